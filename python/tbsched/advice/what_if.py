"""What changes of a program would bring, by asking the model."""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from tbsched.advice.block_sizes import BLOCK_SIZES, with_block_size
from tbsched.advice.change import Change
from tbsched.advice.orders import best_order
from tbsched.counting import first_listed
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.merged import merged
from tbsched.prediction.orders import makespan_ns
from tbsched.prediction.program_device import device_of
from tbsched.program.checks import flag, integer, items
from tbsched.program.kernels import kernel_of
from tbsched.program.library_kernels import is_of_library
from tbsched.program.one_gpu import one_gpu
from tbsched.program.program import Program
from tbsched.program.sequence import LEGACY_STREAM, Sequence, with_launches
from tbsched.progress import each
from tbsched.shown import Shown

CARVEOUTS = (None, 0, 25, 50, 75, 100)
_MAX_KERNELS = 20  # of a program, those that ran longest
_MAX_NAMED = 4  # launches of a kernel that a change names


@dataclass(frozen=True, slots=True, repr=False)
class WhatIf(Shown):
    """A program and changes of it; prints as a table.

    Attributes:
        given: the program as it is, a :class:`Change`.
        changes: a :class:`Change` each, the shortest makespan first.

    Example:
        >>> program = tb.Sequence([tb.Launch(100, 1024, 64, duration=1e-4)])
        >>> found = tb.what_if(program, "h200", carveouts=[0, 100], block_sizes=[512])
        >>> len(found.changes), found.given.sequence == program
        (3, True)
    """

    given: Change
    changes: tuple[Change, ...]


def what_if(
    seq: Sequence | Program,
    device: str | os.PathLike[str] | DeviceSpec,
    policy: str | None = None,
    *,
    carveouts: Iterable[int | None] = CARVEOUTS,
    block_sizes: Iterable[int] = BLOCK_SIZES,
    orders: bool = True,
    launch_interval: float = 0.0,
) -> WhatIf:
    """Predicts how a program would run with other block sizes, carveouts or orders of launches.

    Each change is one of these: another block size for one launch, another carveout for all
    launches, or the order that :func:`best_order` finds. Changes that the device refuses are left
    out.

    A launch with another block size has the same number of threads in all, rounded up to whole
    blocks, and the same shared memory per thread. Its blocks are assumed to run as long as before.
    For a compute-bound kernel that is too short for larger blocks, so a real program gains less
    than predicted. Launches with clusters or with durations per block keep their size. So do
    kernels whose names are those of libraries, such as cuBLAS; they keep their carveouts, too.

    Of a profile with very many blocks, blocks that follow each other on an SM are predicted as one.
    The makespan is then off by less than 0.1 %.

    Args:
        seq: launches with durations, and CUDA events; or a :class:`Program`, whose host calls as it
            did.
        device, policy, launch_interval: as for :func:`tbsched.predict`. A program has times of its
            own between calls.
        carveouts: each is given to all launches at once.
        block_sizes: threads per block; each is given to one launch at a time, of a program to all
            launches of a kernel, for the 20 kernels that ran longest.
        orders: whether to look for a better order. Of a sequence only one of launches alone, none
            of them in the legacy stream, can be reordered; of a program the launches that may move
            (:func:`best_order`).

    Returns:
        A ``WhatIf``, which prints as a table.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`; a sequence without durations.

    Example:
        >>> kernels = [tb.Launch(100, 1024, 64, duration=d) for d in (1e-4, 2e-4, 3e-4)]
        >>> tb.what_if(tb.Sequence(kernels), "h200").changes[0].what
        'launched in the order 2, 1, 0'
    """
    spec = device_of(seq, device) if isinstance(seq, Program) else find_device(device)
    flag("what_if", "orders", orders)
    program = seq if isinstance(seq, Program) else None
    if isinstance(seq, Program):
        if launch_interval:
            raise ValueError(f"launch_interval: {launch_interval}, but a program has its own times")
        seq = seq.sequence
    if isinstance(seq, Sequence) and not seq.timed:
        raise ValueError("sequence: launches with durations are needed")
    if isinstance(seq, Sequence):
        one_gpu("what_if", seq)
    host = None if program is None else program.host

    def predicted(candidate: tuple[str, Sequence]) -> Change:
        """Returns a candidate, words and sequence, as a change with its predicted makespan."""
        what, changed = candidate
        sequence = changed if program is None else merged(changed, spec)
        predicted_ns = makespan_ns(
            sequence, spec, policy, launch_interval=launch_interval, host=host
        )
        if predicted_ns is None:
            raise ValueError(f"what_if: {what}, the program never ends; predict(...).hang says why")
        return Change(what, changed, predicted_ns / 1e9, () if host is None else host)

    def attempted(candidate: tuple[str, Sequence]) -> Change | None:
        """Returns the same; None: the program then hangs, or the device refuses it."""
        try:
            return predicted(candidate)
        except ValueError:  # it hangs, or the device refuses it, as a cooperative launch's carveout
            return None

    given = predicted(("as it is", seq))
    candidates = [
        *_with_carveouts(seq, items("what_if", "carveouts", carveouts)),
        *_with_block_sizes(seq, program, items("what_if", "block_sizes", block_sizes)),
    ]
    wanted = [(what, one) for what, one in candidates if one != seq]
    tried = each(attempted, wanted, "predicting changes")
    changes = [change for change in tried if change is not None]
    alone = seq.events == seq.launches and all(x.stream != LEGACY_STREAM for x in seq.launches)
    if orders and len(seq) > 1 and (alone or program is not None):
        best = best_order(
            seq.launches if program is None else program, spec, policy,
            launch_interval=launch_interval,
        )  # fmt: skip
        words = "launched in the order " + ", ".join(map(str, best.order))
        if best.sequence != seq:
            changes.append(Change(words, best.sequence, best.makespan, best.host))
    saving = [replace(one, saves=given.makespan - one.makespan) for one in changes]
    return WhatIf(given, tuple(sorted(saving, key=lambda change: change.makespan)))


def _with_carveouts(
    seq: Sequence, carveouts: Iterable[int | None]
) -> Iterator[tuple[str, Sequence]]:
    """Yields words for a change, and the program with that carveout in all launches."""
    of_library = [is_of_library(launch) for launch in seq.launches]
    for carveout in carveouts:
        words = "the driver's" if carveout is None else str(carveout)
        which = "every launch that is of no library" if any(of_library) else "every launch"
        launches = [
            x if fixed else replace(x, carveout=carveout)
            for x, fixed in zip(seq.launches, of_library, strict=True)
        ]
        yield f"carveout {words} for {which}", with_launches(seq, launches)


def _with_block_sizes(
    seq: Sequence, program: Program | None, sizes: Iterable[int]
) -> Iterator[tuple[str, Sequence]]:
    """Yields words for a change, and the program with that block size in some launches."""
    groups = [[number] for number in range(len(seq.launches))]
    if program is not None:
        groups = _longest_kernels(program)
    for numbers, given in itertools.product(groups, sizes):
        threads = integer("what_if", "block_sizes", given, 1, 1024)
        made = {k: with_block_size(seq.launches[k], threads) for k in numbers}
        launches = [made.get(k) or launch for k, launch in enumerate(seq.launches)]
        who = (
            f"launch {numbers[0]}"
            if len(numbers) == 1
            else f"launches {first_listed(map(str, numbers), _MAX_NAMED)}"
        )
        if launches != list(seq.launches):
            yield f"{who} in blocks of {threads} threads", with_launches(seq, launches)


def _longest_kernels(program: Program) -> list[list[int]]:
    """Returns the numbers of each kernel's launches, the longest-running kernels first."""
    groups: dict[Hashable, list[int]] = {}
    for number, launch in enumerate(program.sequence.launches):
        groups.setdefault(kernel_of(launch) or number, []).append(number)
    ran = program.measured["end_ns"] - program.measured["start_ns"]
    return sorted(groups.values(), key=lambda own: -int(ran[own].sum()))[:_MAX_KERNELS]
