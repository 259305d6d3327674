"""Changes after which nothing waits for ever; the model checks each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.coresident import coresident
from tbsched.hangs.hang import HangFix
from tbsched.hangs.replay import OWN_ORDER, Replay, Stranded, replayed
from tbsched.hangs.unfinished import Operation, StreamFacts, called
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch

_CONNECTIONS = (2, 4, 8, 16, 32)  # CUDA takes up to 32
_MOST_TOGETHER = 8  # launches for which changes are searched
Streams = dict[tuple[int, int], StreamFacts]


def fixes_of(
    stranded: Stranded,
    operations: tuple[Operation, ...],
    streams: Streams,
    spec: DeviceSpec,
    found: Replay,
    seconds: float,
) -> tuple[tuple[HangFix, ...], str]:
    """Returns changes for a launch that can never start, those that change least first.

    Returns:
        The changes, and a sentence about those that were not tried, if there may be some.
    """
    asked = _Asked(operations, streams, spec)
    if stranded.cause == "hardware_queue":
        return (*asked.connections(), *asked.order(stranded)), ""
    if stranded.cause == "legacy_stream":
        return tuple(asked.non_blocking()), ""
    return _together(stranded, found, spec, seconds)


def non_blocking_fixes(
    operations: tuple[Operation, ...], streams: Streams, spec: DeviceSpec
) -> tuple[HangFix, ...]:
    """Returns other kinds of streams, with which the legacy default stream holds nothing up."""
    return tuple(_Asked(operations, streams, spec).non_blocking())


def loading_fix(
    loaded: Operation, operations: tuple[Operation, ...], streams: Streams, spec: DeviceSpec
) -> tuple[HangFix, ...]:
    """Returns early loading, if the launch then starts."""
    issued = tuple([replace(each, is_called=True) for each in operations])
    if not _Asked(issued, streams, spec).is_free():
        return ()
    name = called(loaded)
    text = (
        f"load {name} before the kernel that waits for it: CUDA_MODULE_LOADING=EAGER, or "
        "cudaFuncGetAttributes, or (PyTorch, Triton) run it once before"
    )
    return (HangFix("loading", text),)


class _Asked:
    """Operations of a program, of which other versions are tried."""

    def __init__(
        self, operations: tuple[Operation, ...], streams: Streams, spec: DeviceSpec
    ) -> None:
        self.operations, self.streams, self.spec = operations, streams, spec

    def is_free(
        self,
        operations: tuple[Operation, ...] | None = None,
        streams: Streams | None = None,
        spec: DeviceSpec | None = None,
    ) -> bool:
        """Returns whether nothing waits for what the program did not ask for."""
        tried = replayed(
            operations or self.operations, streams or self.streams, spec or self.spec, None
        )
        return all(each.cause in OWN_ORDER for each in tried.stranded)

    def connections(self) -> Iterator[HangFix]:
        """Yields the least number of hardware queues that is enough."""
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
        """Yields issuing the launch before what holds it up, if both are in other streams."""
        if stranded.behind is None:
            return
        own, other = self.operations[stranded.operation], self.operations[stranded.behind]
        if own.stream_key == other.stream_key or own.node is not None or other.node is not None:
            return
        kept = [each for each in self.operations if each is not own]
        changed = (*kept[: stranded.behind], own, *kept[stranded.behind :])
        if self.is_free(changed):
            yield HangFix("order", f"launch {called(own)} before {called(other)}")

    def non_blocking(self) -> Iterator[HangFix]:
        """Yields other streams for the work of the legacy stream, or for all others."""
        legacy = {key for key, facts in self.streams.items() if facts.kind == "null"}
        names = [called(each) for each in self.operations if each.stream_key in legacy]
        which = ", ".join(dict.fromkeys(names[:3])) + (" and others" if len(names) > 3 else "")
        own = self.streams | {key: StreamFacts("non_blocking", 0) for key in legacy}
        if names and self.is_free(streams=own):
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


def _together(
    stranded: Stranded, found: Replay, spec: DeviceSpec, seconds: float
) -> tuple[tuple[HangFix, ...], str]:
    """Returns changes after which the kernels are resident together in every order."""
    late = {each.operation for each in found.stranded}
    numbers = [
        place
        for place, launch in enumerate(found.launches)
        if launch is not None and (place not in late or place == stranded.operation)
    ]
    if len(numbers) > _MOST_TOGETHER:
        return (), f"Which changes help: of more than {_MOST_TOGETHER} kernels none are tried."
    launches = [untimed(launch) for place in numbers if (launch := found.launches[place])]
    deadline = time.monotonic() + seconds
    try:
        answer = coresident(launches, spec, seconds=seconds)
    except ValueError as error:
        return (), f"Which changes help: the search refuses a launch: {error}"
    is_over = time.monotonic() >= deadline
    unseen = f"Whether more changes help: the search ended after {seconds:g} s." if is_over else ""
    return tuple([HangFix(fix.kind, fix.text) for fix in answer.fixes]), unseen


def untimed(launch: Launch) -> Launch:
    """Returns a launch for questions that no duration changes the answer to."""
    return replace(launch, duration=1e-3, host=0)
