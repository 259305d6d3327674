"""Other values that a field of a device may have: near ones of a number, all of a few."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import launch_orders, policies

# The slow reference of ampere, with the same answers, and a text that its paper's cases contradict.
_NO_DOUBT = ("algorithm1", "algorithm1_printed")
_LAYOUTS = ("pooled", "contiguous", "circular")
_BY_PATH = {field.path: field for field in FIELDS}


def other_values(spec: DeviceSpec, path: str) -> Iterator[Any]:
    """Yields other values of a field, nearest first; some may be invalid for the device."""
    field = _BY_PATH[path]
    value = field.of(spec)
    if field.type == "bool":
        yield not value
    elif path == "scheduler.policy":
        yield from _others(value, (row.name for row in policies() if row.name not in _NO_DOUBT))
    elif path == "scheduler.launch_order":
        yield from _others(value, (row.name for row in launch_orders()))
    elif field.type == "layout":
        yield from _others(value, iter(_LAYOUTS))
    elif field.type == "int":
        yield from _others(value, _near_and_far(spec, path, value))
    elif field.type == "ns":
        yield from _others(value, iter((2 * value + 1000, value // 2)))
    elif path == "allocation.shared_memory_configurations":
        yield from _sizes(value)
    elif path == "topology.gpcs":
        yield from _rows(value, spec.tpcs)
    elif path == "topology.sm_preference":
        for at in range(len(value) - 1):
            yield (*value[:at], value[at + 1], value[at], *value[at + 2 :])


def _others(value: Any, values: Iterator[Any]) -> Iterator[Any]:
    return (other for other in values if other != value)


def _near_and_far(spec: DeviceSpec, path: str, value: int) -> Iterator[int]:
    """Yields other values of a number, near it and far from it."""
    step = 1
    if path == "allocation.shared_memory_reserve":
        step = spec.shared_memory_unit  # what is taken for granted
    if path == "limits.registers_per_sm":
        # Those that are no whole unit of a processing block are never given out.
        step = spec.processing_blocks * spec.register_unit
    near = (value + step, value - step, 2 * value, value // 2)
    # A TPC with more SMs than the GPU is one with as many.
    yield from (n for n in near if path != "topology.sms_per_tpc" or n <= spec.sms)


def _sizes(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields lists of sizes without one of them, and with one more below or between."""
    for at in range(len(sizes) - 1):
        yield sizes[:at] + sizes[at + 1 :]
    for low, high in pairwise((0, *sizes)):
        middle = (low + high) // 2048 * 1024
        if low < middle < high:
            yield tuple(sorted({*sizes, middle}))


def _rows(gpcs: tuple[tuple[int, ...], ...], tpcs: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yields other maps of GPCs: unknown, a TPC moved or dropped, two GPCs exchanged."""
    if not gpcs:
        yield (tuple(range(tpcs)),)
        return
    yield ()
    for at, row in enumerate(gpcs):
        for tpc in row[-1:]:
            less = [tuple(t for t in other_gpc if t != tpc) for other_gpc in gpcs]
            yield tuple(filter(None, less))
            target = (at + 1) % len(gpcs)
            if target != at:
                less[target] = (*less[target], tpc)
                yield tuple(filter(None, less))
    for gpc_index in range(1, len(gpcs) - 1):
        turned = list(gpcs)
        turned[gpc_index], turned[gpc_index + 1] = turned[gpc_index + 1], turned[gpc_index]
        yield tuple(turned)
