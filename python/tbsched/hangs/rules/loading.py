"""A kernel or module is loaded, which waits for all work on the GPU."""

from __future__ import annotations

from tbsched.counting import listed
from tbsched.hangs.calls import ALLOCATES, LAUNCHES, LOADS, is_copy
from tbsched.hangs.evidence import QUIET, Evidence
from tbsched.hangs.fixes import loading_fix
from tbsched.hangs.hang import LOADING, HangFix, NeverStarts
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Operation, called

_MOST_WAITING = 1000  # launches after which the driver lets launch calls wait


def call_loads(evidence: Evidence) -> Finding:
    """Finds that a thread of the host loads code while a kernel is on the GPU."""
    waiting = evidence.resident_names()
    if not waiting:
        return NOTHING
    unseen: tuple[str, ...] = ()
    for call in evidence.calls:
        issues = [each for each in evidence.operations if each.call == call.call]
        own = next((each for each in issues if each.is_first), issues[0] if issues else None)
        if call.kind == LAUNCHES:
            if own is None and evidence.capture is None:
                unseen = (
                    f"Whether {call.function} loads a kernel, or waits because too many launches "
                    "wait: without a capture nobody knows; assumed that it loads one.",
                )
            elif own is None or not own.is_first or len(evidence.operations) >= _MOST_WAITING:
                continue  # it does not load its kernel
        elif call.kind != LOADS:
            continue
        what = called(own) if own is not None else "a kernel or module"
        return _loading(
            own,
            f"{what} is loaded in {call.function}, which waits for {listed(waiting)}",
            f"{call.function} has not returned: it loads code, and that waits for all work on the "
            "GPU.",
            evidence.operations,
            evidence,
            unseen,
        )
    return NOTHING


def not_on_gpu(evidence: Evidence) -> Finding:
    """Finds that a launch could start by the model, but is not resident: its kernel is loaded."""
    waiting = evidence.resident_names()
    if evidence.look is None or evidence.replay is None or not waiting:
        return NOTHING
    for place, own in enumerate(evidence.issued):
        is_explained = place in evidence.never_start or own.key in evidence.on_gpu
        if own.what != LAUNCH or is_explained or not own.is_first:
            continue
        if not any(each.key in evidence.on_gpu for each in evidence.issued[:place]):
            continue
        return _loading(
            own,
            f"{called(own)} was launched while {listed(waiting)} was on the GPU, and was "
            "not loaded before: loading waits for all work on the GPU",
            f"{called(own)} was launched for the first time and is not on the GPU, although it "
            "waits for nothing and there is room for it, by the model.",
            evidence.issued,
            evidence,
        )
    return NOTHING


def driver_loads(evidence: Evidence) -> Finding:
    """Finds that the driver loads a kernel whose launch call has returned."""
    capture, waiting = evidence.capture, evidence.resident_names()
    if capture is None or evidence.look is not None or capture.waits_for_driver < QUIET:
        return NOTHING
    if any(call.kind == ALLOCATES or is_copy(call.function) for call in evidence.calls):
        return NOTHING
    if capture.loaded >= capture.launched and not _has_first_graph(evidence):
        return NOTHING  # none is left to be loaded
    launches = [each for each in evidence.operations if each.what in (LAUNCH, GRAPH)]
    waits = next((k for k, each in enumerate(launches) if called(each) in waiting), None)
    later = [] if waits is None else launches[waits + 1 :]
    own = next((each for each in later if each.is_first or each.what == GRAPH), None)
    if own is None:
        return NOTHING
    return _loading(
        own,
        f"{called(own)} was launched for the first time behind {listed(waiting)}, and the "
        "driver loads it: loading waits for all work on the GPU",
        f"The driver has given CUPTI no records for {capture.waits_for_driver:.1f} s: it does "
        "not while it loads code behind a kernel.",
        evidence.operations,
        evidence,
    )


def _has_first_graph(evidence: Evidence) -> bool:
    """Returns whether a graph was launched whose kernels may not have been loaded."""
    return any(
        each.what == GRAPH or (each.node is not None and each.is_first)
        for each in evidence.operations
    )


def _loading(
    own: Operation | None,
    reason: str,
    proof: str,
    operations: tuple[Operation, ...],
    evidence: Evidence,
    unseen: tuple[str, ...] = (),
) -> Finding:
    """Returns that a kernel is loaded; None: it is not known which.

    ``operations``: what is issued, for early loading as a fix.
    """
    stranded: tuple[NeverStarts, ...] = ()
    fixes: tuple[HangFix, ...] = ()
    if own is not None and own.what == LAUNCH:
        behind = evidence.resident_names()[0]
        stranded = (NeverStarts(called(own), own.blocks, own.blocks, "loading", behind),)
    capture, spec = evidence.capture, evidence.seen.spec
    if own is not None and spec is not None and capture is not None:
        fixes = loading_fix(own, operations, capture.streams, spec)
    return Finding(
        kind=LOADING, reason=reason, stranded=stranded, fixes=fixes, proof=(proof,), unseen=unseen
    )
