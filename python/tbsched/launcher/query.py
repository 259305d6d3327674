"""What a GPU and its driver say about themselves, without a context and without a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from tbsched.errors import NoGpuError, shown
from tbsched.hardware.described import known_engines
from tbsched.traces.placement import DeviceInfo


@dataclass(frozen=True, slots=True)
class Queried:
    """What the driver says about a GPU.

    Attributes:
        info: name, number of SMs, and what else an observation on it has.
        limits: values by the names of a device's fields.
        shared_memory_per_sm: bytes, the largest configuration.
        clusters: whether it takes clusters.
        mps: whether an MPS daemon seems to run, so that SM numbers are not physical.
    """

    info: DeviceInfo
    limits: Mapping[str, int]
    shared_memory_per_sm: int
    clusters: bool
    mps: bool


def queried(gpu: int = 0) -> Queried:
    """Asks the driver about a GPU; nothing runs there.

    Args:
        gpu: its number as CUDA counts them.

    Raises:
        TypeError, ValueError: no number of a GPU.
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.
    """
    check_index(gpu)
    info = import_launcher().query(gpu)
    details = ("compute_capability", "driver", "cuda", "uuid", "max_connections")
    limits = (
        "sms",
        "blocks_per_sm",
        "registers_per_sm",
        "threads_per_block",
        "shared_memory_reserve",
        "shared_memory_per_block",
    )
    return Queried(
        DeviceInfo(info["name"], info["sms"], {key: info[key] for key in details}),
        {
            "warps_per_sm": info["threads_per_sm"] // 32,
            "copy_engine_count": known_engines(info["copy_engines"]),
            **{key: info[key] for key in limits},
        },
        info["shared_memory_per_sm"],
        info["clusters"],
        info["mps"],
    )


def gpus() -> int:
    """Returns how many GPUs CUDA shows to this process.

    Raises:
        NoGpuError: no usable one; the message says what was looked for.
    """
    return int(import_launcher().gpus())


def check_index(gpu: int) -> None:
    """Refuses what is no number of a GPU."""
    if isinstance(gpu, bool) or not isinstance(gpu, int):
        raise TypeError(f"gpu: an integer is needed, got {shown(gpu)}")
    if not 0 <= gpu < 2**31:
        raise ValueError(f"gpu: {gpu} is outside 0..{2**31 - 1}")


def import_launcher() -> ModuleType:
    """Returns the launcher, which is not built where there is no CUDA toolkit.

    Raises:
        NoGpuError: it was not built.
    """
    try:
        from tbsched import _launcher
    except ImportError as error:
        raise NoGpuError(
            f"this tbsched was built without its GPU launcher ({error}): install the CUDA toolkit, "
            "so that nvcc is found, and install tbsched again"
        ) from error
    return _launcher
