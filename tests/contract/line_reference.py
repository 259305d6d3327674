"""Launches that wait, written plainly: at every event, all of them are looked at in order.

What fits is asked of the plain Algorithm 1. Slow, and independent of the core.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from contract.literal import CANNOT_SCHEDULE_NOW, GPU, Resident, ThreadBlock, thread_block
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch, Release, Sequence


@dataclass(eq=False)
class Kernel:
    """A launch on its way.

    Attributes:
        sms: where its blocks may go.
        cause: what they wait for: stream, queue or room, or one of the last two.
    """

    launch: Launch
    sms: set[int]
    before: Kernel | None  # in its stream
    block: ThreadBlock
    placed: list[int] = field(default_factory=list)
    held: list[Resident] = field(default_factory=list)
    released: bool = False
    cause: str | None = None

    @property
    def waits(self) -> bool:
        return len(self.placed) < self.launch.blocks

    @property
    def is_behind_its_stream(self) -> bool:
        return self.before is not None and not self.before.over

    @property
    def over(self) -> bool:
        return self.released and not self.waits

    def smid(self) -> list[int]:
        return self.placed + [-1] * (self.launch.blocks - len(self.placed))


@dataclass
class Line:
    """The GPU and all launches, in the order of the host."""

    gpu: GPU
    by_priority: bool
    head_of_line: bool
    on_own_sms: bool
    kernels: list[Kernel] = field(default_factory=list)

    def launch(self, launch: Launch) -> Kernel:
        same = [k for k in self.kernels if k.launch.stream == launch.stream is not None]
        block = thread_block(launch, self.gpu.spec)
        sms = set(range(self.gpu.spec.sms) if launch.partition is None else launch.partition.sms)
        self.kernels.append(Kernel(launch, sms, same[-1] if same else None, block))
        self.serve()
        return self.kernels[-1]

    def release(self, number: int) -> None:
        self.kernels[number].released = True
        self.leave(self.kernels[number])
        self.serve()

    def leave(self, kernel: Kernel) -> None:
        for block in kernel.held:
            self.gpu.exit(block)
        kernel.held = []

    def serve(self) -> None:
        """Blocks of a released launch exit as soon as they are placed, and then all begins anew."""
        while self.look_at_all():
            pass

    def look_at_all(self) -> bool:
        """Whether blocks have left."""
        moved = False
        held: set[int] = set()  # by those that wait
        order = list(self.kernels)
        if self.by_priority:
            order.sort(key=lambda kernel: kernel.launch.priority)
        growing = self.first_to_grow()
        for kernel in [kernel for kernel in order if kernel.waits]:
            kernel.cause = None
            if kernel.is_behind_its_stream:
                kernel.cause = "stream"
            elif kernel.sms <= held or kernel in growing[1:]:
                kernel.cause = "queue"
            else:
                needs_idle_gpu = kernel.block.config_l > self.gpu.config_l
                self.fill(kernel, kernel.sms - held)
                if kernel.waits and self.head_of_line:
                    alone = self.on_own_sms and not needs_idle_gpu
                    held |= kernel.sms if alone else set(range(self.gpu.spec.sms))
                moved = moved or (kernel.released and bool(kernel.held))
                if kernel.released:
                    self.leave(kernel)
                if kernel in growing and kernel.placed:
                    return True
        return moved

    def first_to_grow(self) -> list[Kernel]:
        """The first kernel that needs more local memory, and all kernels that came after it."""
        if self.head_of_line:
            for number, kernel in enumerate(self.kernels):
                more = kernel.block.config_l > self.gpu.config_l
                if more and not kernel.placed and not kernel.is_behind_its_stream:
                    return self.kernels[number:]
        return []

    def fill(self, kernel: Kernel, open_to: set[int]) -> None:
        while kernel.waits:
            sm = self.gpu.schedule(kernel.block, open_to)
            if sm == CANNOT_SCHEDULE_NOW:
                kernel.cause = "room" if open_to == kernel.sms else "queue or room"
                return
            kernel.held.append(self.gpu.place(kernel.block, sm))
            kernel.placed.append(sm)


def run(
    sequence: Sequence,
    spec: DeviceSpec,
    *,
    by_priority: bool,
    head_of_line: bool,
    on_own_sms: bool = True,
) -> list[tuple[list[int], str | None, list[int]]]:
    """Returns each launch's SMs and cause before the next event, and its SMs after all events."""
    line = Line(GPU(spec), by_priority, head_of_line, on_own_sms)
    first: list[tuple[list[int], str | None]] = []
    for event in sequence:
        if isinstance(event, Release):
            line.release(event.launch)
        else:
            assert isinstance(event, Launch)
            kernel = line.launch(event)
            first.append((kernel.smid(), kernel.cause if kernel.waits else None))
    return [(*now, k.smid()) for now, k in zip(first, line.kernels, strict=True)]
