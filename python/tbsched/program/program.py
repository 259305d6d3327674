"""A program as it was measured: what it launched, when its host called, and when kernels ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tbsched.program.activity import Activity
from tbsched.program.arrays import HoldsArrays, Int64Array, StructuredArray
from tbsched.program.gpu_facts import GpuFacts
from tbsched.program.ranks import Rank
from tbsched.program.sequence import Sequence
from tbsched.shown import Shown

# Times are of one clock, which is 0 at the first call or start. -1: the profile does not say.
MEASURED = np.dtype(
    [
        # As the profile has it. Names of templates are long, so they are shared.
        ("name", np.object_),
        ("stream", np.int64),  # as the profile numbers it, if no other context has that number
        ("start_ns", np.int64),
        ("end_ns", np.int64),
        ("call_ns", np.int64),
        ("return_ns", np.int64),
        ("channel", np.int32),
        ("shared_memory_executed", np.int32),
        ("work", np.int64),  # the row of Program.activity.work
    ]
)
BLOCK_TIMES = "The time of each block"  # begins the sentence of ``Program.assumed`` about it
TRANSFERS = np.dtype([("start_ns", np.int64), ("end_ns", np.int64), ("work", np.int64)])


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Program(Shown, HoldsArrays):
    """A real program, out of a profile; :func:`tbsched.load_program` reads it.

    Attributes:
        sequence: what it launched. Durations are of blocks.
        host: for each event of ``sequence`` the seconds since the last call of its host thread
            returned: what :func:`tbsched.predict` takes as ``host``.
        measured: a row per launch of ``sequence.launches``, as ``MEASURED``: when the kernel ran,
            and when the host called.
        transfers: a row per copy, memset and host function of ``sequence.transfers``, as
            ``TRANSFERS``.
        streams: the streams of the profile but for the default one, in the order of their first
            use. ``sequence`` has their numbers.
        device: the name of the GPU as the profile has it; None if it does not say.
        sms: how many SMs that has; None if the profile does not say.
        connections: CUDA_DEVICE_MAX_CONNECTIONS of the process, which a device's
            ``hardware_queues`` should be; None if the profile does not say.
        format: what wrote the profile.
        sources: where in the profile each field stands.
        assumed: what the profile does not say, and what was assumed instead.
        fitted: for each launch how well the duration of its blocks is known, 0 to 1; empty: they
            were not fitted.
        kernel_overhead: seconds by which kernels last longer in the profile than from their first
            block to their last, as fitted; below 0: shorter.
        gpu: what the profile says of the GPU; None: nothing.
        activity: what ran on all GPUs, and what host threads did; None: the profile says no more
            than the other fields.
        calls: for each event of ``sequence`` the row of ``activity.host`` of its call, int64; -1:
            unknown.
        ranks: of several profiles that were read together a :class:`Rank` each.
        first_ns: of a part of a profile, when the first work of the whole profile started, on the
            clock of ``measured``, often below 0; None: it is the first work here.

    Example:
        >>> program = tb.load_program("trace.json.gz")  # doctest: +SKIP
        >>> tb.predict(program.sequence, "h200", host=program.host).makespan  # doctest: +SKIP
        0.002588
    """

    sequence: Sequence
    host: tuple[float, ...]
    measured: StructuredArray
    transfers: StructuredArray
    streams: tuple[str, ...] = ()
    device: str | None = None
    sms: int | None = None
    connections: int | None = None
    format: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    fitted: tuple[float, ...] = ()
    kernel_overhead: float = 0.0
    gpu: GpuFacts | None = None
    activity: Activity | None = None
    calls: Int64Array | None = None
    ranks: tuple[Rank, ...] = ()
    first_ns: int | None = None

    @property
    def gpus(self) -> tuple[int, ...]:
        """Returns the numbers of the GPUs in ``activity``; empty if the profile has none.

        Of ranks with one GPU each, the number of a GPU is that of its rank.
        """
        if self.activity is None:
            return ()
        return tuple(np.unique(self.activity.work["gpu"]).tolist())
