"""What an idle GPU may still remember, in the components that the policy which models it names."""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass
from typing import SupportsIndex, cast

from tbsched import _core
from tbsched.errors import shown


@dataclass(frozen=True, slots=True, init=False, repr=False)
class InitialState:
    """What an idle GPU may still remember, such as where the numbering of blocks starts.

    ``InitialState(first_gpc=3)``: by the names of its components, which are attributes too. Those
    not named are 0, so that ``InitialState()`` is the default under every policy. Without their
    names, in the order of the first policy that has any. Of policy ``hopper``:

    ``first_gpc``: the GPC that takes the first blocks. ``first_singleton``: the TPC outside the
    GPCs at or after which, in turn, the pair of such TPCs begins that is first among those.

    Raises:
        TypeError: components that no policy has, or that are no integers.
    """

    _not_zero: tuple[tuple[str, int], ...]

    def __init__(self, *values: int, **components: int) -> None:
        names = _names_with(components)
        given = dict(zip(names, values, strict=False)) | components
        if len(given) < len(values) + len(components):
            raise TypeError(f"InitialState: each of {', '.join(names)} is needed at most once")
        given = {name: _whole(name, value) for name, value in given.items()}
        not_zero = tuple((name, given[name]) for name in names if given.get(name, 0) != 0)
        object.__setattr__(self, "_not_zero", not_zero)

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or not any(name in names for names in _core.state_names()):
            raise AttributeError(f"an InitialState has no {name!r}")
        return dict(self._not_zero).get(name, 0)

    def __repr__(self) -> str:
        names = _names_with([name for name, _ in self._not_zero])
        return (
            f"InitialState({', '.join(f'{name}={shown(getattr(self, name))}' for name in names)})"
        )


def _whole(name: str, value: object) -> int:
    try:
        return operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"InitialState.{name}: an integer is needed, got {shown(value)}") from None


def _names_with(wanted: Collection[str]) -> tuple[str, ...]:
    """All components of the first policy that has these, and any."""
    rows = [names for names in _core.state_names() if names]
    for names in rows:
        if set(wanted) <= set(names):
            return names
    raise TypeError(
        f"InitialState: no policy has the components {', '.join(wanted)}; there are "
        f"{'; '.join(', '.join(names) for names in rows)}"
    )
