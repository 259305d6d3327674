"""Causes and what they are by, as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tbsched.program.arrays import Int64Array


class Labels:
    """Numbers pairs of a cause and a name (what the cause is by) in the order of first use."""

    def __init__(self, names: Sequence[str], known: Iterable[tuple[str, str]] = ()) -> None:
        self._names = names
        self._pairs: list[tuple[str, str]] = list(known)
        self._numbers = {pair: number for number, pair in enumerate(self._pairs)}
        self._host: dict[int, int] = {}

    def number(self, cause: str, name: str) -> int:
        """Returns the number of a pair of cause and name; a new pair gets the next one."""
        found = self._numbers.setdefault((cause, name), len(self._pairs))
        if found == len(self._pairs):
            self._pairs.append((cause, name))
        return found

    def numbers(self, cause: str, names: Int64Array) -> Int64Array:
        """Returns the numbers of pairs of one cause and names of the profile, int64 (names,)."""
        return self.of_keys(lambda name: (cause, self._names[name]), names)

    def of_keys(self, pair: Callable[..., tuple[str, str]], *keys: Int64Array) -> Int64Array:
        """Returns a label's number for each row of keys; ``pair`` is called once for each key."""
        if not len(keys[0]):
            return np.zeros(0, np.int64)
        distinct, inverse = np.unique(np.stack(keys), axis=1, return_inverse=True)
        numbers = [self.number(*pair(*map(int, key))) for key in distinct.T]
        return np.array(numbers, np.int64)[inverse.ravel()]

    def mark_host_actions(self, labels: Int64Array, names: Int64Array) -> None:
        """Marks labels as actions of the host, with these names of the profile."""
        distinct, place = np.unique(labels, return_index=True)
        self._host |= dict(zip(distinct.tolist(), names[place].tolist(), strict=True))

    def host_name(self, number: int) -> int:
        """Returns the index of the profile's name from which a host's label is; -1: it is none."""
        return self._host.get(number, -1)

    def __getitem__(self, number: int) -> tuple[str, str]:
        return self._pairs[number]

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)
