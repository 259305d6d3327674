"""What launches are called where there is little room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from tbsched.program.arrays import Int64Array
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import (
    Copy,
    GraphLaunch,
    Memset,
    RecordEvent,
    Release,
    Synchronize,
    WaitEvent,
)
from tbsched.program.sequence import Sequence as Program
from tbsched.views.words import launch_words, transfer_name

LONGEST = 48
_GAP = "…"


def label(launch: Launch, longest: int = LONGEST) -> str:
    """The launch's name, cut in the middle if it is long; else as much of what it asks for as fits.

    Args:
        launch: of a sequence.
        longest: characters, at least 3.
    """
    if launch.name:
        return cut(launch.name, longest)
    words = launch_words(launch)
    if len(words) <= longest:
        return words
    # What comes first says most, so the rest is left out.
    first = words[: longest - 2].rpartition(", ")[0]
    return f"{first}, {_GAP}" if first else cut(words, longest)


def call_names(sequence: Program) -> list[str]:
    """Of each event what the host calls, such as ``launch gemm`` or ``synchronize stream 2``.

    The first use of a kernel, which loads it, is marked: it takes far longer than other calls.
    """
    transfers = 0
    names = []
    for event in sequence:
        match event:
            case Launch():
                names.append(f"launch {label(event)}{', first use' if event.first_use else ''}")
            case GraphLaunch():
                names.append("launch graph")
            case Copy() | Memset():
                names.append(transfer_name(transfers, event))
                transfers += 1
            case RecordEvent():
                names.append(f"record event {event.event}")
            case WaitEvent():
                names.append(f"make stream {event.stream} wait for event {event.event}")
            case Synchronize(stream=None, event=None):
                names.append("synchronize")
            case Synchronize():
                awaited = (
                    f"stream {event.stream}" if event.event is None else f"event {event.event}"
                )
                names.append(f"synchronize {awaited}")
            case Release():
                names.append("release")
            case _:
                assert_never(event)
    return names


def span_name(sequence: Program, number: int, longest: int = LONGEST) -> str:
    """The label of a launch; of numbers behind those, the name of a copy or memset."""
    transfer = number - len(sequence.launches)
    if transfer < 0:
        return label(sequence.launches[number], longest)
    return transfer_name(transfer, sequence.transfers[transfer])


def kernels_of(launches: Sequence[Launch]) -> Int64Array:
    """For each launch the first one of its name, int64 (launches,); itself if it has no name."""
    first: dict[str, int] = {}
    return np.array(
        [
            first.setdefault(launch.name, number) if launch.name else number
            for number, launch in enumerate(launches)
        ],
        np.int64,
    )


def cut(text: str, longest: int = LONGEST) -> str:
    """The text on one line and without characters that cannot be shown, cut in the middle.

    Names of C++ templates begin alike and end alike, but most often in between. So the end is
    shown, too.
    """
    # What is far beyond the ends is not looked at: a name may have megabytes.
    ends = text if len(text) <= 4 * longest else f"{text[: 2 * longest]}{text[-2 * longest :]}"
    shown = visible(ends)
    if len(shown) <= longest and ends is text:
        return shown
    begin = -(-(longest - 1) * 2 // 3)
    return f"{shown[:begin]}{_GAP}{shown[len(shown) - (longest - 1 - begin) :]}"


def cut_apart(texts: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Texts, cut so that different ones stay different.

    Where two are cut alike, each shows its begin, and what stands from the first difference on.
    """
    found = [cut(text, longest) for text in texts]
    alike: dict[str, set[str]] = {}
    for text, short in zip(texts, found, strict=True):
        alike.setdefault(short, set()).add(text)
    for place, (text, short) in enumerate(zip(texts, found, strict=True)):
        if len(others := alike[short]) > 1:
            differs = max(_alike(text, other) for other in others if other != text)
            begin = longest // 2
            since = max(begin, differs - longest // 8)
            found[place] = (
                f"{visible(text[:begin])}{_GAP}{visible(text[since : since + longest // 2])}"
            )
    return found


def _alike(one: str, other: str) -> int:
    """How many characters two texts have in common at their begins."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def visible(text: str) -> str:
    """The text with spaces for line ends and tabs, and a mark for other control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
