"""A kernel or module is loaded, which waits for all work on the GPU."""

from __future__ import annotations

from tbsched.counting import listed
from tbsched.hangs.calls import ALLOCATES, LAUNCHES, LOADS, is_copy
from tbsched.hangs.evidence import QUIET, Evidence
from tbsched.hangs.fixes import loading_fix
from tbsched.hangs.hang import LOADING, HangFix, NeverStarts
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Operation, name_of

_MAX_QUEUED_LAUNCHES = 1000  # launches after which the driver lets launch calls wait


def call_loads(evidence: Evidence) -> Finding:
    """Finds a host thread in a call that loads code while a kernel is on the GPU."""
    waiting = evidence.resident_names()
    if not waiting:
        return NOTHING
    unseen: tuple[str, ...] = ()
    for call in evidence.calls:
        issued = [op for op in evidence.operations if op.call == call.call]
        loaded = next((issue for issue in issued if issue.is_first), issued[0] if issued else None)
        if call.kind == LAUNCHES:
            if loaded is None and evidence.capture is None:
                unseen = (
                    f"Whether {call.function} loads a kernel, or waits because too many launches "
                    "wait: without a capture nobody knows; assumed that it loads one.",
                )
            elif (
                loaded is None
                or not loaded.is_first
                or len(evidence.operations) >= _MAX_QUEUED_LAUNCHES
            ):
                continue  # it does not load its kernel
        elif call.kind != LOADS:
            continue
        what = name_of(loaded) if loaded is not None else "a kernel or module"
        return _loading_finding(
            loaded, f"{what} is loaded in {call.function}, which waits for {listed(waiting)}",
            f"{call.function} has not returned: it loads code, and that waits for all work on the "
            "GPU.",
            evidence.operations, evidence, unseen,
        )  # fmt: skip
    return NOTHING


def not_on_gpu(evidence: Evidence) -> Finding:
    """Finds a launch that could start, by the model, but is not resident: its kernel is loaded."""
    waiting = evidence.resident_names()
    if evidence.snapshot is None or evidence.replay is None or not waiting:
        return NOTHING
    for index, launch in enumerate(evidence.issued):
        is_explained = index in evidence.never_start or launch.key in evidence.on_gpu
        if launch.what != LAUNCH or is_explained or not launch.is_first:
            continue
        if not any(each.key in evidence.on_gpu for each in evidence.issued[:index]):
            continue
        return _loading_finding(
            launch,
            f"{name_of(launch)} was launched while {listed(waiting)} was on the GPU, and was "
            "not loaded before: loading waits for all work on the GPU",
            f"{name_of(launch)} was launched for the first time and is not on the GPU, although it "
            "waits for nothing and there is room for it, by the model.",
            evidence.issued,
            evidence,
        )
    return NOTHING


def driver_loads(evidence: Evidence) -> Finding:
    """Finds that the driver loads a kernel whose launch call has returned."""
    capture, waiting = evidence.capture, evidence.resident_names()
    if capture is None or evidence.snapshot is not None or capture.waits_for_driver < QUIET:
        return NOTHING
    if any(call.kind == ALLOCATES or is_copy(call.function) for call in evidence.calls):
        return NOTHING
    if capture.loaded >= capture.launched and not _has_unloaded_graph(evidence):
        return NOTHING  # none is left to be loaded
    launches = [operation for operation in evidence.operations if operation.what in (LAUNCH, GRAPH)]
    first_waiting = next((k for k, each in enumerate(launches) if name_of(each) in waiting), None)
    launches_behind = [] if first_waiting is None else launches[first_waiting + 1 :]
    loaded = next((each for each in launches_behind if each.is_first or each.what == GRAPH), None)
    if loaded is None:
        return NOTHING
    return _loading_finding(
        loaded,
        f"{name_of(loaded)} was launched for the first time behind {listed(waiting)}, and the "
        "driver loads it: loading waits for all work on the GPU",
        f"The driver has given CUPTI no records for {capture.waits_for_driver:.1f} s: it does "
        "not while it loads code behind a kernel.",
        evidence.operations,
        evidence,
    )


def _has_unloaded_graph(evidence: Evidence) -> bool:
    """Returns whether a graph was launched whose kernels may not have been loaded."""
    return any(
        operation.what == GRAPH or (operation.node is not None and operation.is_first)
        for operation in evidence.operations
    )


def _loading_finding(
    loaded: Operation | None, reason: str, proof: str, operations: tuple[Operation, ...],
    evidence: Evidence, unseen: tuple[str, ...] = (),
) -> Finding:  # fmt: skip
    """Returns the finding that a kernel is loaded; ``own`` None: it is not known which.
    ``operations``: what is issued, for early loading as a fix."""
    stranded: tuple[NeverStarts, ...] = ()
    fixes: tuple[HangFix, ...] = ()
    if loaded is not None and loaded.what == LAUNCH:
        behind = evidence.resident_names()[0]
        stranded = (NeverStarts(name_of(loaded), loaded.blocks, loaded.blocks, "loading", behind),)
    capture, spec = evidence.capture, evidence.seen.spec
    if loaded is not None and spec is not None and capture is not None:
        fixes = loading_fix(loaded, operations, capture.streams, spec)
    return Finding(
        kind=LOADING, reason=reason, stranded=stranded, fixes=fixes, proof=(proof,), unseen=unseen
    )
