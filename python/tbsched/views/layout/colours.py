"""A colour per kernel, the same one in every view."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Sequence

from tbsched.program.events.launch import Launch

# Okabe and Ito's colours, which colour-blind people tell apart, but for yellow and black: one
# cannot be seen on white, and the other on a dark page. Then the same ones lighter and darker.
_HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_LIGHTER, _DARKER = 0.45, -0.38
# Colours of copies and memsets, in every view.
TRANSFER_COLOUR = "#808890"


def colours_of(launches: Sequence[Launch]) -> list[str]:
    """Returns a colour per launch, ``#rrggbb``.

    Launches of one kernel name have one colour. It depends on the set of names alone and not on
    their order, so that it is the same in a prediction, in an observation and in another order of
    the launches. Launches without a name are told apart by their numbers. There are 18 colours; of
    more kernels some share one.
    """
    return colours_of_names([launch.name for launch in launches])


def colours_of_names(names: Sequence[str | None]) -> list[str]:
    """Returns a colour for each launch from its name; without a name, one that no name has."""
    slots = _slots(sorted({name for name in names if name}, key=_preferred))
    every = range(len(PALETTE))
    free = [slot for slot in every if slot not in slots.values()] or list(every)
    unnamed = itertools.cycle(free)
    return [PALETTE[slots[name] if name else next(unnamed)] for name in names]


def _slots(names: Iterable[str]) -> dict[str, int]:
    """Returns the number of a colour for each name: the preferred one, or the next free one."""
    slots: dict[str, int] = {}
    used: set[int] = set()
    for position, name in enumerate(names):
        # Plain colours are all taken before a lighter one is.
        tier = position // len(_HUES) % (len(PALETTE) // len(_HUES)) * len(_HUES)
        if position % len(PALETTE) == 0:
            used.clear()
        preferred = zlib.crc32(name.encode("utf-8", "replace")) % len(_HUES)
        turns = ((preferred + step) % len(_HUES) + tier for step in range(len(_HUES)))
        slots[name] = next(slot for slot in turns if slot not in used)
        used.add(slots[name])
    return slots


def _preferred(name: str) -> tuple[int, str]:
    return zlib.crc32(name.encode("utf-8", "replace")), name


def _mixed(colour: str, share: float) -> str:
    """Returns the colour with a share of white in it, or of black if the share is negative."""
    target = 255 if share > 0 else 0
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(part + (target - part) * abs(share)):02x}" for part in parts)


PALETTE = tuple(_mixed(colour, share) for share in (0.0, _LIGHTER, _DARKER) for colour in _HUES)
