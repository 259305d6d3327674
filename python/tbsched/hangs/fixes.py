"""Changes after which nothing waits for ever; the model checks each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.coresident import coresident
from tbsched.hangs.hang import HangFix
from tbsched.hangs.replay import OWN_ORDER, Replay, Stranded, replay_operations
from tbsched.hangs.unfinished import Operation, StreamFacts, name_of
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch

_CONNECTIONS = (2, 4, 8, 16, 32)  # CUDA takes up to 32
_MAX_LAUNCHES = 8  # launches for which changes are searched
Streams = dict[tuple[int, int], StreamFacts]


def fixes_for(
    stranded: Stranded, operations: tuple[Operation, ...], streams: Streams, spec: DeviceSpec,
    replay: Replay, seconds: float,
) -> tuple[tuple[HangFix, ...], str]:  # fmt: skip
    """Returns the changes that let a launch start, by the model, the smallest first; and a
    sentence.

    Returns:
        The changes, and a sentence about those that were not tried, if there may be some.
    """
    variants = _Variants(operations, streams, spec)
    if stranded.cause == "hardware_queue":
        return (*variants.connections(), *variants.order(stranded)), ""
    if stranded.cause == "legacy_stream":
        return tuple(variants.non_blocking()), ""
    return _coresidency_fixes(stranded, replay, spec, seconds)


def non_blocking_fixes(
    operations: tuple[Operation, ...], streams: Streams, spec: DeviceSpec
) -> tuple[HangFix, ...]:
    """Returns fixes that make streams non-blocking: the legacy stream then holds up none."""
    return tuple(_Variants(operations, streams, spec).non_blocking())


def loading_fix(
    loaded: Operation, operations: tuple[Operation, ...], streams: Streams, spec: DeviceSpec
) -> tuple[HangFix, ...]:
    """Returns the fix that loads a kernel early, if the launch then starts; else none."""
    issued = tuple([replace(operation, has_returned=True) for operation in operations])
    if not _Variants(issued, streams, spec).is_free():
        return ()
    name = name_of(loaded)
    text = (
        f"load {name} before the kernel that waits for it: CUDA_MODULE_LOADING=EAGER, or "
        "cudaFuncGetAttributes, or (PyTorch, Triton) run it once before"
    )
    return (HangFix("loading", text),)


class _Variants:
    """Tries variants of a program's operations, streams and GPU in the model."""

    def __init__(
        self, operations: tuple[Operation, ...], streams: Streams, spec: DeviceSpec
    ) -> None:
        self.operations, self.streams, self.spec = operations, streams, spec

    def is_free(
        self, operations: tuple[Operation, ...] | None = None, streams: Streams | None = None,
        spec: DeviceSpec | None = None,
    ) -> bool:  # fmt: skip
        """Returns whether, in a variant, launches wait only for what the program itself orders."""
        tried = replay_operations(
            operations or self.operations, streams or self.streams, spec or self.spec, None
        )
        return all(each.cause in OWN_ORDER for each in tried.stranded)

    def connections(self) -> Iterator[HangFix]:
        """Yields the smallest sufficient number of hardware queues as a fix."""
        for queues in _CONNECTIONS:
            if queues <= self.spec.hardware_queues:
                continue
            if self.is_free(spec=replace(self.spec, hardware_queues=queues)):
                text = (
                    f"CUDA_DEVICE_MAX_CONNECTIONS={queues} in the environment before the program "
                    f"starts (it has {self.spec.hardware_queues} hardware queues now)"
                )
                yield HangFix("connections", text)
                return

    def order(self, stranded: Stranded) -> Iterator[HangFix]:
        """Yields issuing the launch before what holds it up as a fix, if their streams differ."""
        if stranded.behind is None:
            return
        late, blocker = self.operations[stranded.operation], self.operations[stranded.behind]
        if late.stream_key == blocker.stream_key or {late.node, blocker.node} != {None}:
            return
        others = [op for op in self.operations if op is not late]
        changed = (*others[: stranded.behind], late, *others[stranded.behind :])
        if self.is_free(changed):
            yield HangFix("order", f"launch {name_of(late)} before {name_of(blocker)}")

    def non_blocking(self) -> Iterator[HangFix]:
        """Yields non-blocking streams as fixes: for the legacy stream's work, or for all others."""
        legacy = {key for key, facts in self.streams.items() if facts.kind == "null"}
        names = [name_of(op) for op in self.operations if op.stream_key in legacy]
        which = ", ".join(dict.fromkeys(names[:3])) + (" and others" if len(names) > 3 else "")
        changed = self.streams | {key: StreamFacts("non_blocking", 0) for key in legacy}
        if names and self.is_free(streams=changed):
            yield HangFix(
                "non_blocking",
                f"give {which} a stream of its own instead of the legacy default stream "
                "(cudaStreamNonBlocking; PyTorch: with torch.cuda.stream(torch.cuda.Stream())), "
                "or compile with --default-stream per-thread",
            )
        others = {
            key: facts if facts.kind == "null" else replace(facts, kind="non_blocking")
            for key, facts in self.streams.items()
        }
        if others != self.streams and self.is_free(streams=others):
            yield HangFix(
                "non_blocking",
                "make the other streams with cudaStreamNonBlocking, so that they do not wait for "
                "the legacy default stream",
            )


def _coresidency_fixes(
    stranded: Stranded, replay: Replay, spec: DeviceSpec, seconds: float
) -> tuple[tuple[HangFix, ...], str]:
    """Returns changes that let the kernels be resident together in every order; and a sentence."""
    stranded_indices = {each.operation for each in replay.stranded}
    indices = [
        index
        for index, launch in enumerate(replay.launches)
        if launch is not None and (index not in stranded_indices or index == stranded.operation)
    ]
    if len(indices) > _MAX_LAUNCHES:
        return (), f"Which changes help: of more than {_MAX_LAUNCHES} kernels none are tried."
    launches = [untimed(launch) for index in indices if (launch := replay.launches[index])]
    deadline = time.monotonic() + seconds
    try:
        answer = coresident(launches, spec, seconds=seconds)
    except ValueError as error:
        return (), f"Which changes help: the search refuses a launch: {error}"
    is_over = time.monotonic() >= deadline
    unseen = f"Whether more changes help: the search ended after {seconds:g} s." if is_over else ""
    return tuple([HangFix(fix.kind, fix.text) for fix in answer.fixes]), unseen


def untimed(launch: Launch) -> Launch:
    """Returns a launch of 1 ms, for questions to which no duration matters."""
    return replace(launch, duration=1e-3, host=0)
