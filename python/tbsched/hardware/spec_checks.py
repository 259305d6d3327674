"""What a device must look like, whether it was read from a file or made in Python."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tbsched.hardware.spec import DeviceSpec

LAYOUTS = ("contiguous", "circular", "pooled")

# The largest of each number that the core's 32-bit arithmetic is built for.
_RANGES: dict[str, tuple[int, int]] = {
    "sms": (1, 65536),
    "sms_per_tpc": (1, 64),
    "processing_blocks": (1, 4),
    "blocks_per_sm": (1, 1024),
    "cluster_blocks_per_sm": (1, 1024),
    "warps_per_sm": (1, 64),
    "registers_per_sm": (1, 2**24),
    "threads_per_block": (1, 1024),
    "registers_per_thread": (1, 1024),
    "max_cluster": (1, 64),
    "register_unit": (1, 65536),
    "shared_memory_unit": (1, 65536),
    "shared_memory_reserve": (0, 65536),
    "shared_memory_per_block": (0, 2**24),
    "local_memory_initial": (0, 2**24),
    "local_memory_unit": (1, 65536),
    "hardware_queues": (1, 1024),
    "resident_grids": (1, 2**20),
    "launch_latency_ns": (0, 10**9),
    "completion_latency_ns": (0, 10**9),
    "exit_latency_ns": (0, 10**9),
    "event_latency_ns": (0, 10**9),
    "legacy_latency_ns": (0, 10**9),
    "launch_switch_ns": (0, 10**9),
}


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _validate_types(spec: DeviceSpec) -> None:
    """What a spec built in Python might get wrong; one read from a file has these types."""
    for name in ("name", "title", "compute_capability", "policy", "launch_order"):
        if not isinstance(getattr(spec, name), str):
            raise TypeError(f"{name}: a string is needed, got {getattr(spec, name)!r}")
    for name in ("sm_preference", "shared_memory_configurations"):
        value = getattr(spec, name)
        if not isinstance(value, tuple) or not all(map(_is_whole, value)):
            raise TypeError(f"{name}: a tuple of integers is needed, got {value!r}")
    rows = spec.gpcs
    if not isinstance(rows, tuple) or not all(
        isinstance(row, tuple) and all(map(_is_whole, row)) for row in rows
    ):
        raise TypeError(f"gpcs: a tuple of tuples of integers is needed, got {rows!r}")
    for item in fields(spec.mechanisms):
        value = getattr(spec.mechanisms, item.name)
        if item.name not in ("registers", "shared_memory") and not isinstance(value, bool):
            raise TypeError(f"mechanisms.{item.name}: True or False is needed, got {value!r}")


def validate(spec: DeviceSpec) -> None:
    """Refuses a device that makes no sense.

    Raises:
        TypeError, ValueError: naming the field, the value and the limit.
    """
    _validate_types(spec)
    for name, (low, high) in _RANGES.items():
        value = getattr(spec, name)
        if not _is_whole(value):
            raise TypeError(f"{name}: an integer is needed, got {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{name}: {value} is outside {low}..{high}")
    for name in ("registers", "shared_memory"):
        layout = getattr(spec.mechanisms, name)
        if not isinstance(layout, str) or layout not in LAYOUTS:
            raise ValueError(f"mechanisms.{name}: {layout!r} is not one of {', '.join(LAYOUTS)}")
    for name in ("warps_per_sm", "registers_per_sm"):
        if getattr(spec, name) % spec.processing_blocks:
            raise ValueError(
                f"{name}: {getattr(spec, name)} is not a multiple of processing_blocks, "
                f"{spec.processing_blocks}"
            )
    if sorted(spec.sm_preference) != list(range(spec.sms)):
        raise ValueError(f"sm_preference: must name each of the {spec.sms} SMs once")
    members = [tpc for gpc in spec.gpcs for tpc in gpc]
    if len(set(members)) != len(members) or any(not 0 <= tpc < spec.tpcs for tpc in members):
        raise ValueError(f"gpcs: must name TPCs of 0..{spec.tpcs - 1}, each at most once")
    sizes = spec.shared_memory_configurations
    if not sizes or list(sizes) != sorted(set(sizes)) or not 0 <= sizes[0] <= sizes[-1] <= 2**24:
        raise ValueError(f"shared_memory_configurations: must ascend within 0..2**24, got {sizes}")
    needed = (
        round_up(spec.shared_memory_per_block, spec.shared_memory_unit) + spec.shared_memory_reserve
    )
    if needed > sizes[-1]:
        raise ValueError(
            f"shared_memory_per_block: {spec.shared_memory_per_block} with its reserve is more "
            f"than the largest configuration, {sizes[-1]}"
        )
