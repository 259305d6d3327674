"""Why a program of a profile took so long, and what would shorten it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from tbsched.advice.account.account import account_of
from tbsched.advice.account.labels import Labels
from tbsched.advice.account.programs import with_activity
from tbsched.advice.change import Change
from tbsched.advice.explain.changes.predicted import changes_of
from tbsched.advice.explain.costs import filled_share
from tbsched.advice.explain.explanation import Explanation, Gap
from tbsched.advice.explain.exposed import exposed
from tbsched.advice.explain.facts import Facts
from tbsched.advice.explain.gaps import gaps_of
from tbsched.advice.explain.kernel_gaps import kernel_gaps
from tbsched.advice.explain.savings import roots_with_savings
from tbsched.advice.explain.suppositions import choose_supposition
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.coarse import blocks_at_once, coarser
from tbsched.prediction.fitting.durations import alike_in_graphs, fewer_blocks, fit_durations
from tbsched.prediction.fitting.effort import QUICK
from tbsched.prediction.fitting.host import fitted_host
from tbsched.prediction.program_device import check_ran_on, device_of
from tbsched.program.activity import COLLECTIVE, UNKNOWN
from tbsched.program.checks import flag, instance, seconds
from tbsched.program.program import Program
from tbsched.program.sequence import Copy, with_launches

_MIN_GAP_SHARE = 0.01  # share of the makespan that a gap costs at least
_MAX_LAUNCHES = 20_000  # launches whose changes are predicted
_MAX_ERROR = 0.1  # of a predicted makespan, as a share, for which changes are reported
_ACCOUNT_ALONE = "No change was tried: only the account was asked for."
_NO_GRAPHS = (
    "CUDA graphs were not tried as a change: how long the launch of one takes on {name} is not "
    "known. Where the host is late with launches, they help."
)
_NO_PINNED = (
    "Pinned memory was not tried as a change: how fast copies from or to it are on {name} is not "
    "known. Copies of pageable memory keep the host in their calls, and are slower."
)
_PEERS = "if it does not wait for a peer instead, in its next collective"
_APART_NS = 1000  # tolerated overlap of consecutive kernels


def explain(
    program: Program,
    device: str | os.PathLike[str] | DeviceSpec | None = None,
    *,
    threshold: float | None = None,
    predicted: bool = True,
) -> Explanation:
    """Explains where the time of a profile went, and what would shorten the program.

    The *account* is made from the profile alone. Of each GPU every nanosecond from the first work
    to the last has one cause: a kernel, collective or copy ran, or nothing did. If nothing ran,
    somebody was late with the next work. Until its launch call returned that is the host, and the
    account names what its thread did: the call of CUDA, else the operator, annotation or function
    that the profile has there. From then on it is what the work waited for on the GPU.

    The *gaps* are the times in which a GPU could have done more: no kernel ran, or none of a
    stream, or one that left SMs idle held up the next one. The last two need a prediction.

    For the causes that cost most it then tries *changes*: other streams, events, orders, carveouts,
    block sizes, priorities, more hardware queues, no synchronisation, no pauses of the host. Each
    is predicted, and those that shorten the program are kept. A change may need something to hold,
    such as that a kernel does not need the result of another one. Nobody but you knows that. Where
    the prediction of the program as it is is off by more than 10 %, no change is proposed.

    If the prediction is far from the profile, it looks for what the profile may not say: that all
    streams shared one hardware queue, or that kernels were loaded at their first use. What brings
    the prediction nearest is supposed, and ``program.assumed`` of the result says so.

    Args:
        program: as :func:`tbsched.load_program` reads it, soonest with ``fit=False``. If ``fitted``
            is empty, and kernels ran at the same time, durations are fitted here, less thoroughly
            than :func:`tbsched.fit_durations` does.
        device: what it ran on: a name, the path of a ``.toml`` file, or a spec. None: what the
            profile says.
        threshold: seconds that a gap costs at least; None: one per cent of the makespan, which all
            gaps of a kernel and a cause cost together.
        predicted: whether the program is predicted, too. Without it there are the account and the
            times in which no kernel ran, which needs no device and takes a moment.

    Raises:
        TypeError, ValueError: no program, one in which nothing ran, one that cannot run on the
            device, or a shipped device on which it was not recorded.

    Example:
        >>> print(tb.explain(tb.load_program("trace.json.gz", fit=False)))  # doctest: +SKIP
    """
    instance("explain", "program", program, Program)
    _check_lengths(program)
    check_ran_on(program, device)
    given = None if threshold is None else seconds("explain", "threshold", threshold)
    flag("explain", "predicted", predicted)
    why = _why_not_predicted(program, device) if predicted else _ACCOUNT_ALONE
    if why is not None:
        program = program if program.activity is not None else with_activity(program, None)
        return _account_only(program, given, why)
    try:
        return _predicted(program, device_of(program, device), given)
    except ValueError as error:
        # What is known of a described GPU may not do for its kernels, and accounts for them all the
        # same.
        if device is not None or program.activity is None:
            raise
        return _account_only(program, given, f"No change is proposed: {error}.")


def _predicted(program: Program, spec: DeviceSpec, threshold: float | None) -> Explanation:
    """Returns the explanation of a program that can be predicted: account, gaps and changes."""
    fitted = program
    if not program.fitted and _kernels_overlap(program):
        fitted = fit_durations(program, spec, thorough=False)
    elif not program.fitted:
        fitted = _timed_by_kernels(program, spec)
    fitted, spec, prediction = choose_supposition(fitted, spec)
    if fitted.activity is None:
        fitted = with_activity(fitted, prediction)
    elif fitted.calls is None or len(fitted.calls) != len(fitted.sequence):
        # Somebody has changed the program.
        fitted = replace(fitted, calls=np.full(len(fitted.sequence), UNKNOWN, np.int64))
    assert fitted.activity is not None
    account = account_of(fitted.activity)
    labels = Labels(account.activity.names, account.labels)
    facts = Facts.of(fitted, spec, prediction, account, labels)
    makespan = float(facts.end_ns.max() - facts.start_ns.min()) / 1e9
    least_cost = _MIN_GAP_SHARE * makespan if threshold is None else threshold
    all_gaps = [*kernel_gaps(fitted, account, labels), *gaps_of(facts)]
    gaps = _costliest_gaps(all_gaps, least_cost, is_asked=threshold is not None)
    communication = exposed(account, labels)
    causes, notes = roots_with_savings(account)
    error = prediction.makespan / makespan - 1 if makespan else 0.0
    changes: tuple[Change, ...] = ()
    if abs(error) > _MAX_ERROR:
        note = (
            "No change is proposed: the program as it is is predicted to take "
            f"{100 * abs(error):.0f} % {'longer' if error > 0 else 'less'} than it took, so what a "
            "change saves is not known."
        )
        notes = (note, *notes)
    else:
        assumed = dict.fromkeys((*fitted.assumed, *_untried_changes(fitted, spec)))
        fitted = replace(fitted, assumed=tuple(assumed))
        changes = changes_of(facts, all_gaps)
        if (account.activity.work["kind"] == COLLECTIVE).any():
            changes = tuple(map(_warn_of_peers, changes))
    return Explanation(
        fitted, account, prediction, gaps, changes, least_cost, notes, filled_share(facts),
        communication, causes,
    )  # fmt: skip


def _untried_changes(program: Program, spec: DeviceSpec) -> Iterator[str]:
    """Yields sentences: changes not tried because nobody has measured their cost on the GPU."""
    if not spec.graph_latency_ns:
        yield _NO_GRAPHS.format(name=spec.title)
    pageable = any(isinstance(x, Copy) and not x.pinned for x in program.sequence.transfers)
    if pageable and not spec.host_copy_bandwidth:
        yield _NO_PINNED.format(name=spec.title)


def _warn_of_peers(change: Change) -> Change:
    """Returns a change of one GPU of several, with the condition that peers may wait instead."""
    condition = f"{change.condition}; {_PEERS}" if change.condition else _PEERS
    return replace(change, condition=condition)


def _check_lengths(program: Program) -> None:
    """Checks that a changed program still has a row for each of its parts. Raises ValueError: a
    part has no row."""
    sequence = program.sequence
    for name, rows, needed in (
        ("host", program.host, len(sequence)),
        ("measured", program.measured, len(sequence.launches)),
        ("transfers", program.transfers, len(sequence.transfers)),
    ):
        if len(rows) != needed:
            raise ValueError(
                f"explain.program.{name}: {needed} are needed, as its sequence has, got {len(rows)}"
            )


def _account_only(program: Program, threshold: float | None, why: str) -> Explanation:
    """Returns the explanation that the profile alone allows, without predictions."""
    assert program.activity is not None
    account = account_of(program.activity)
    labels = Labels(account.activity.names, account.labels)
    least_cost = _MIN_GAP_SHARE * account.span_ns / 1e9 if threshold is None else threshold
    gaps = _costliest_gaps(
        kernel_gaps(program, account, labels), least_cost, is_asked=threshold is not None
    )
    causes, notes = roots_with_savings(account)
    return Explanation(
        program, account, None, gaps, (), least_cost, (why, *notes), None, exposed(account, labels),
        causes,
    )  # fmt: skip


def _costliest_gaps(gaps: Iterable[Gap], least: float, *, is_asked: bool) -> tuple[Gap, ...]:
    """Returns the gaps that cost ``least`` seconds or more, the most costly first.

    Unless somebody asked for those by themselves, gaps before launches of one kernel for one cause
    count together: many small ones cost as much as a large one. Not those that may be needed: a
    launch mostly needs what is before it in its stream. They come last.
    """
    groups: dict[object, list[Gap]] = {}
    for gap in gaps:
        by_itself = is_asked or gap.kind == "order"
        groups.setdefault(id(gap) if by_itself else gap.alike, []).append(gap)
    groups_kept = [group for group in groups.values() if sum(gap.cost for gap in group) >= least]
    chosen = [gap for group_ in groups_kept for gap in group_]
    chosen.sort(key=lambda gap: (gap.kind == "order", -gap.cost, gap.begin, gap.kind))
    return tuple(chosen)


def _why_not_predicted(
    program: Program, device: str | os.PathLike[str] | DeviceSpec | None
) -> str | None:
    """Returns why a program is not predicted, in words; None: it is predicted."""
    launches = len(program.sequence.launches)
    if not launches:
        if program.activity is None or not len(program.activity.work):
            raise ValueError("explain.program: it has no launches, and nothing ran on a GPU")
        return f"No change is proposed: {next(iter(program.assumed), 'no kernel is predicted.')}"
    if program.sequence.gpus > 1:
        return (
            "No change is proposed: the program has several GPUs, and changes are predicted on one."
        )
    if launches > _MAX_LAUNCHES:
        return (
            f"No change is proposed: {launches:,} launches are more than {_MAX_LAUNCHES:,}; "
            "select a part with --from and --to (start and end of load_program)."
        )
    try:
        device_of(program, device).check(program.sequence)
    except ValueError as error:
        if device is not None or program.activity is None:
            raise
        return f"No change is proposed: {error}."
    return None


def _kernels_overlap(program: Program) -> bool:
    """Returns whether kernels overlapped; otherwise their times determine those of blocks."""
    rows = program.measured[np.argsort(program.measured["start_ns"], kind="stable")]
    until = np.maximum.accumulate(rows["end_ns"])[:-1]
    return bool((rows["start_ns"][1:] < until - _APART_NS).any())


def _timed_by_kernels(program: Program, spec: DeviceSpec) -> Program:
    """Returns the program with block durations from its kernels' times, which do not overlap."""
    # Called only if no kernels overlap.
    sequence, fewer = coarser(program.sequence, spec, QUICK.program)
    launches = sequence.launches
    took_ns = program.measured["end_ns"] - program.measured["start_ns"]
    waves = np.array([-(-x.blocks // blocks_at_once(spec, x)) for x in launches])
    each_ns = alike_in_graphs(program.sequence, took_ns / waves)
    timed = [
        launch if isinstance(launch.duration, tuple) else replace(launch, duration=ns / 1e9)
        for launch, ns in zip(launches, each_ns.tolist(), strict=True)
    ]
    assumed = (*program.assumed, *((fewer_blocks(fewer),) if fewer else ()))
    program = replace(program, sequence=with_launches(sequence, timed), assumed=assumed)
    host, _ = fitted_host(program, spec)
    return replace(program, host=host)
