"""Predict which SM every thread block of a sequence of concurrent CUDA kernels lands on.

Run the same sequence on the GPU, compare block by block, and let Hypothesis find and shrink the
sequences on which the two disagree.

    import tbsched as tb

    seq = tb.Sequence([tb.Launch(blocks=66, threads=512, registers=32), tb.Release(0)])
    print(tb.predict(seq, device="h200"))
"""

from tbsched.advice import best_order, what_if
from tbsched.compare import Diff, Divergence, compare
from tbsched.duration import Drawn
from tbsched.errors import (
    CudaError,
    DeadlineExceeded,
    NoGpuError,
    TbschedError,
    UnstableMeasurement,
)
from tbsched.evenness import Evenness, forced_even
from tbsched.fuzz import fuzz
from tbsched.launch_configs import Kernel, LaunchConfig, LaunchConfigs, launch_configs
from tbsched.observe import observe, observe_many
from tbsched.predict import launch_orders, policies, predict
from tbsched.sequence import (
    LEGACY_STREAM,
    Launch,
    RecordEvent,
    Release,
    Sequence,
    WaitEvent,
)
from tbsched.spec import DeviceSpec, InitialState, ablations, device, devices
from tbsched.steer import Steered, steer
from tbsched.timing import TimeDiff, compare_times
from tbsched.trace import Placement, Trace, load_traces, save_traces

__all__ = [
    "LEGACY_STREAM",
    "CudaError",
    "DeadlineExceeded",
    "DeviceSpec",
    "Diff",
    "Divergence",
    "Drawn",
    "Evenness",
    "InitialState",
    "Kernel",
    "Launch",
    "LaunchConfig",
    "LaunchConfigs",
    "NoGpuError",
    "Placement",
    "RecordEvent",
    "Release",
    "Sequence",
    "Steered",
    "TbschedError",
    "TimeDiff",
    "Trace",
    "UnstableMeasurement",
    "WaitEvent",
    "ablations",
    "best_order",
    "compare",
    "compare_times",
    "device",
    "devices",
    "forced_even",
    "fuzz",
    "launch_configs",
    "launch_orders",
    "load_traces",
    "observe",
    "observe_many",
    "policies",
    "predict",
    "save_traces",
    "steer",
    "what_if",
]
