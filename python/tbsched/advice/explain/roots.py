"""What kept the GPUs of a program from working, wherever the time was lost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tbsched.advice.account.account import NO_PROFILE, Account
from tbsched.advice.account.idle import NO_WORK, without_context
from tbsched.advice.account.peers import COLLECTIVE, PEER, SLOWED, TRANSFER

_WORK = ("kernel", "copy", "migration")  # is no loss of the GPU on which it ran
_OF_ALL = (TRANSFER, SLOWED, COLLECTIVE)
ALL = -1  # GPUs


class Root(NamedTuple):
    """A cause of lost time of several GPUs.

    Attributes:
        gpu: with which it lies; -1: with all that take part, as bytes move between them.
        cause: as in the account.
        by: as in the account, without where in the program it was.
        own: seconds that its own GPU did nothing for it; for -1, that GPUs did nothing else.
        waited: seconds that other GPUs waited for it in collectives.
        saves: seconds that the program would take less without it, by a replay of the profile;
            None: it cannot be taken out, or it is not among the first 16.
        saves_on_all: the same if all ranks did without it.

    Example:
        >>> tb.Root(0, "host", "decode_images", 0.012, 0.011).waited
        0.011
    """

    gpu: int
    cause: str
    by: str
    own: float
    waited: float
    saves: float | None = None
    saves_on_all: float | None = None


def roots(account: Account) -> tuple[Root, ...]:
    """Returns what kept the GPUs of an account from working, what cost most first."""
    labels, parts = account.labels, account.parts
    ns = np.zeros((len(account.gpus), len(labels)), np.int64)
    np.add.at(ns, (parts.first, parts.second), parts.end - parts.begin)
    own: dict[tuple[int, str, str], int] = {}
    waited: dict[tuple[int, str, str], int] = {}
    for gpu_index, label in np.argwhere(ns).tolist():
        cause, by = labels[label]
        length = int(ns[gpu_index, label])
        if cause == PEER:
            origin = account.origins[label]
            key = (origin.gpu, origin.cause, without_context(origin.by))
            waited[key] = waited.get(key, 0) + length
        elif cause not in _WORK and cause != NO_WORK and by != NO_PROFILE:
            key = (ALL if cause in _OF_ALL else account.gpus[gpu_index], cause, without_context(by))
            own[key] = own.get(key, 0) + length
    rows = [
        Root(*key, own.get(key, 0) / 1e9, waited.get(key, 0) / 1e9) for key in own.keys() | waited
    ]
    return tuple(sorted(rows, key=lambda root: (-root.own - root.waited, root[:3])))
