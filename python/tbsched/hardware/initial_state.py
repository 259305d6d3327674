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
    """The latent state: what an idle GPU still remembers of the launches before.

    A policy names the components of its state. Each component is an argument and an attribute. The
    default of each is 0, so ``InitialState()`` is the default state under every policy.

    Policy ``hopper`` has two (measured on H200s, traces ``h200/ptr`` and ``h200/levels``):

    - ``first_gpc``: of the GPCs, the first to take a block.
    - ``first_singleton``: the TPCs outside the GPCs are counted from 0, and form pairs: 0 and 1,
      2 and 3. The pair that begins at this number is the first to take a block. For an odd number
      it is the next pair, and after the last pair the first one.

    Args:
        *values: components in the order of the policy, such as ``InitialState(3, 2)``.
        **components: components by name.

    Raises:
        TypeError: components that no policy has, or that are no integers.

    Example:
        >>> state = tb.InitialState(first_gpc=3)
        >>> state, state.first_singleton
        (InitialState(first_gpc=3, first_singleton=0), 0)
        >>> sequence = tb.Sequence([tb.Launch(132, 1024, 32)])
        >>> tb.predict(sequence, "h200")[0].smid[8:11].tolist()
        [0, 1, 16]
        >>> tb.predict(sequence, "h200", initial_state=state)[0].smid[8:11].tolist()
        [6, 7, 22]
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

    def components(self) -> dict[str, int]:
        """Returns the value of each component that the state's policy has, by name.

        Example:
            >>> tb.InitialState(first_gpc=3).components()
            {'first_gpc': 3, 'first_singleton': 0}
        """
        names = _names_with([name for name, _ in self._not_zero])
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        values = [f"{name}={shown(value)}" for name, value in self.components().items()]
        return f"InitialState({', '.join(values)})"


def _whole(name: str, value: object) -> int:
    """Returns a component's value as an int. Raises TypeError: it is no integer."""
    try:
        return operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"InitialState.{name}: an integer is needed, got {shown(value)}") from None


def _names_with(wanted: Collection[str]) -> tuple[str, ...]:
    """Returns the components of the first policy that has all of ``wanted``."""
    rows = [names for names in _core.state_names() if names]
    for names in rows:
        if set(wanted) <= set(names):
            return names
    raise TypeError(
        f"InitialState: no policy has the components {', '.join(wanted)}; there are "
        f"{'; '.join(', '.join(names) for names in rows)}"
    )
