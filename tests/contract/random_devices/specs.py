"""Random devices that validation accepts: shipped ones of which some sections are drawn anew.

A device of which all are is made up whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from tbsched.hardware.catalogue import device, devices
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import launch_orders, policies

Values = dict[str, Any]
LAYOUTS = ("contiguous", "circular", "pooled")
LATENCIES = (0, 0, 1, 180, 1_450, 7_000)


def topology(draw: st.DrawFn, most_sms: int) -> Values:
    """Few SMs or more; the last TPC can be smaller, GPCs are uneven or empty, TPCs are in none."""
    sms = draw(st.integers(1, min(12, most_sms)) | st.integers(1, most_sms))
    sms_per_tpc = draw(st.sampled_from([2, 2, 2, 1, 3, 4, 64]))
    order = list(range(sms))
    preference = draw(
        st.one_of(st.just(order), st.just(order[::2] + order[1::2]), st.permutations(order))
    )
    tpcs = draw(st.permutations(range(-(-sms // sms_per_tpc))))
    number = draw(st.integers(0, 5))
    gpcs: list[list[int]] = [[] for _ in range(number)]
    for tpc in tpcs:
        home = draw(st.integers(-1, number - 1))
        if home >= 0:
            gpcs[home].append(tpc)
    return {
        "sms": sms,
        "sms_per_tpc": sms_per_tpc,
        "sm_preference": tuple(preference),
        "gpcs": tuple(map(tuple, gpcs)),
        "coscheduled_sms": sms_per_tpc * draw(st.sampled_from([0, 1, 2, 4, 8])),
        "max_cluster": draw(st.sampled_from([1, 2, 3, 8, 16, 64])),
    }


def limits(draw: st.DrawFn, _: int) -> Values:
    """From an SM that holds hardly anything to the largest that the core is built for."""
    parts = draw(st.integers(1, 4))
    unit = draw(st.sampled_from([256, 256, 1, 100, 512, 65_536]))
    registers = draw(st.sampled_from([512, 5_000, 16_384, 2**22]))
    return {
        "processing_blocks": parts,
        "warps_per_sm": parts * draw(st.integers(1, 64 // parts)),
        "registers_per_sm": parts * max(registers, unit),
        "register_unit": unit,
        "blocks_per_sm": draw(st.sampled_from([1, 2, 5, 16, 32, 64, 1_024])),
        "cluster_blocks_per_sm": draw(st.sampled_from([1, 2, 8, 32, 1_024])),
        "threads_per_block": draw(st.sampled_from([1, 32, 500, 1_024, 1_024])),
        "registers_per_thread": draw(st.sampled_from([8, 63, 255, 1_024])),
    }


def allocation(draw: st.DrawFn, _: int) -> Values:
    """Shared memory of one size or many, of which the reserve may take all."""
    sizes = st.sampled_from([0, 1, 4_096, 8_192, 10_000, 16_384, 32_768, 102_400, 233_472, 2**24])
    found = sorted(draw(st.sets(sizes, min_size=1, max_size=4)))
    reserve = min(draw(st.sampled_from([0, 1, 1_024, 4_096, 65_536])), found[-1])
    unit = draw(st.sampled_from([128, 1, 100, 1_024, 65_536]))
    most = (found[-1] - reserve) // unit * unit
    return {
        "shared_memory_configurations": tuple(found),
        "shared_memory_reserve": reserve,
        "shared_memory_unit": unit,
        "shared_memory_threshold": draw(st.sampled_from([0, 0, 1, 3_072, 2**24])),
        "shared_memory_per_block": draw(st.sampled_from([most, most // 2, 0])),
        "local_memory_initial": draw(st.sampled_from([0, 100, 1_024, 2**24])),
        "local_memory_unit": draw(st.sampled_from([1, 16, 100, 65_536])),
    }


def mechanisms(draw: st.DrawFn, _: int) -> Values:
    """Each switch by itself."""
    fields = dataclasses.fields(device("h200").mechanisms)
    return {
        field.name: draw(st.sampled_from(LAYOUTS) if field.type == "str" else st.booleans())
        for field in fields
    }


def scheduler(draw: st.DrawFn, _: int) -> Values:
    """Policies and launch orders, few queues and grids, latencies."""
    latencies = ("launch", "completion", "exit", "event")
    return {
        "policy": draw(st.sampled_from([row.name for row in policies()])),
        "launch_order": draw(st.sampled_from([row.name for row in launch_orders()])),
        "hardware_queues": draw(st.sampled_from([1, 2, 8, 1_024])),
        "copy_engine_count": draw(st.integers(1, 2)),
        "copy_channels": draw(st.sampled_from([1, 4, 1_024])),
        "resident_grids": draw(st.sampled_from([1, 2, 128, 2**20])),
        **{f"{name}_latency_ns": draw(st.sampled_from(LATENCIES)) for name in latencies},
        "launch_switch_ns": draw(st.sampled_from(LATENCIES)),
        "front_ends": draw(st.integers(1, 3)),
        "queue_watch_ns": draw(st.sampled_from(LATENCIES)),
        "host_watch_ns": draw(st.sampled_from(LATENCIES)),
        "host_write_ns": draw(st.sampled_from(LATENCIES)),
    }


SECTIONS: Mapping[str, Callable[[st.DrawFn, int], Values]] = {
    "topology": topology,
    "limits": limits,
    "allocation": allocation,
    "mechanisms": mechanisms,
    "scheduler": scheduler,
}


def changed(spec: DeviceSpec, values: Values) -> DeviceSpec:
    """The device with those values; mechanisms are among them."""
    known = {field.name for field in dataclasses.fields(spec.mechanisms)}
    switches = {name: value for name, value in values.items() if name in known}
    rest = {name: value for name, value in values.items() if name not in known}
    switched = dataclasses.replace(spec.mechanisms, **switches)
    return dataclasses.replace(spec, provenance={}, mechanisms=switched, **rest)


@st.composite
def specs(
    draw: st.DrawFn, base: str | None = None, only: tuple[str, ...] = (), most_sms: int = 40
) -> DeviceSpec:
    """A shipped device, or that one, of which some sections, or those, are drawn anew."""
    some = st.sets(st.sampled_from(sorted(SECTIONS)), min_size=1)
    drawn = only or draw(some | st.just(set(SECTIONS)))
    if base is None:
        base = draw(st.sampled_from(devices()))
    values: Values = {}
    for section in sorted(drawn):
        values |= SECTIONS[section](draw, most_sms)
    return changed(device(base), values)
