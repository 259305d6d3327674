"""Predict which SM every thread block of a sequence of concurrent CUDA kernels lands on.

Run the same sequence on the GPU, compare block by block, and let Hypothesis find and shrink the
sequences on which the two disagree.

    import tbsched as tb

    seq = tb.Sequence([tb.Launch(blocks=66, threads=512, registers=32), tb.Release(0)])
    print(tb.predict(seq, device="h200"))
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tbsched.advice.evenness import Evenness, forced_even
    from tbsched.advice.launch_configs import Kernel, LaunchConfig, LaunchConfigs, launch_configs
    from tbsched.advice.orders import best_order, what_if
    from tbsched.campaigns.campaign import fuzz
    from tbsched.campaigns.steer import Steered, steer
    from tbsched.comparison.compare import Diff, Divergence, compare
    from tbsched.comparison.times import TimeDiff, compare_times
    from tbsched.errors import (
        CudaError,
        DeadlineExceeded,
        NoGpuError,
        TbschedError,
        UnstableMeasurement,
    )
    from tbsched.hardware.catalogue import ablations, device, devices
    from tbsched.hardware.initial_state import InitialState
    from tbsched.hardware.spec import DeviceSpec
    from tbsched.launcher.observe import observe, observe_many
    from tbsched.prediction.predict import (
        launch_orders,
        policies,
        predict,
        predict_as_recorded,
        predict_many,
    )
    from tbsched.program.duration import Drawn
    from tbsched.program.sequence import (
        LEGACY_STREAM,
        Launch,
        RecordEvent,
        Release,
        Sequence,
        WaitEvent,
    )
    from tbsched.traces.trace import Placement, Trace, load_traces, save_traces

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
    "predict_as_recorded",
    "predict_many",
    "save_traces",
    "steer",
    "what_if",
]

# Which module each public name is in. Modules are imported when they are first needed, so that a
# program that predicts does not wait for those that fuzz.
_NAMES_OF = {
    "advice.orders": ("best_order", "what_if"),
    "comparison.compare": ("Diff", "Divergence", "compare"),
    "program.duration": ("Drawn",),
    "errors": (
        "CudaError",
        "DeadlineExceeded",
        "NoGpuError",
        "TbschedError",
        "UnstableMeasurement",
    ),
    "advice.evenness": ("Evenness", "forced_even"),
    "campaigns.campaign": ("fuzz",),
    "advice.launch_configs": ("Kernel", "LaunchConfig", "LaunchConfigs", "launch_configs"),
    "launcher.observe": ("observe", "observe_many"),
    "prediction.predict": (
        "launch_orders",
        "policies",
        "predict",
        "predict_as_recorded",
        "predict_many",
    ),
    "program.sequence": (
        "LEGACY_STREAM",
        "Launch",
        "RecordEvent",
        "Release",
        "Sequence",
        "WaitEvent",
    ),
    "hardware.catalogue": ("ablations", "device", "devices"),
    "hardware.initial_state": ("InitialState",),
    "hardware.spec": ("DeviceSpec",),
    "campaigns.steer": ("Steered", "steer"),
    "comparison.times": ("TimeDiff", "compare_times"),
    "traces.trace": ("Placement", "Trace", "load_traces", "save_traces"),
}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
