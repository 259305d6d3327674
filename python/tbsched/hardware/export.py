"""A device as a C++ header, for simulators that embed the predictor without Python."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable

from tbsched.hardware.spec import DeviceSpec

_WIDTH = 100


def cpp_header(spec: DeviceSpec) -> str:
    """A header with ``inline tbsched::DeviceSpec NAME()``; it needs ``tbsched::tbsched`` alone.

    Args:
        spec: a device; characters of its name that C++ does not allow become underscores.

    Raises:
        TypeError: not a spec.
    """
    if not isinstance(spec, DeviceSpec):
        raise TypeError(f"cpp_header: a DeviceSpec is needed, got {spec!r}")
    tpc_of_sm = [sm // spec.sms_per_tpc for sm in range(spec.sms)]
    gpc_of_tpc = spec.gpc_of_tpc
    switches = spec.mechanisms
    topology = {
        "tpc_of_sm": _numbers(tpc_of_sm, 14),
        "gpc_of_sm": _numbers((gpc_of_tpc[tpc] for tpc in tpc_of_sm), 14),
        "sm_preference": _numbers(spec.sm_preference, 14),
    }
    mechanisms = {
        "strict_round_robin": _flag(switches.strict_round_robin),
        "warp_skip": _flag(switches.warp_skip),
        "registers": f"tbsched::Layout::{switches.registers}",
        "shared_memory": f"tbsched::Layout::{switches.shared_memory}",
        "shared_memory_configuration": _flag(switches.shared_memory_configuration),
        "configuration_per_tpc": _flag(switches.configuration_per_tpc),
        "configuration_headroom": _flag(switches.configuration_headroom),
        "explicit_carveout_is_upper_bound": _flag(switches.explicit_carveout_is_upper_bound),
        "local_memory_configuration": _flag(switches.local_memory_configuration),
        "clusters_seek_idle_sms": _flag(switches.clusters_seek_idle_sms),
        "clusters_take_whole_tpcs": _flag(switches.clusters_take_whole_tpcs),
    }
    members = {
        "name": _string(spec.name),
        "topology": _braces(topology, 10),
        "processing_blocks": str(spec.processing_blocks),
        "blocks_per_sm": str(spec.blocks_per_sm),
        "cluster_blocks_per_sm": str(spec.cluster_blocks_per_sm),
        "warps_per_sm": str(spec.warps_per_sm),
        "registers_per_sm": str(spec.registers_per_sm),
        "register_unit": str(spec.register_unit),
        "threads_per_block": str(spec.threads_per_block),
        "registers_per_thread": str(spec.registers_per_thread),
        "shared_memory_unit": str(spec.shared_memory_unit),
        "shared_memory_reserve": str(spec.shared_memory_reserve),
        "shared_memory_per_block": str(spec.shared_memory_per_block),
        "shared_memory_configurations": _numbers(spec.shared_memory_configurations, 10),
        "local_memory_initial": str(spec.local_memory_initial),
        "local_memory_unit": str(spec.local_memory_unit),
        "max_cluster": str(spec.max_cluster),
        "mechanisms": _braces(mechanisms, 10),
        "policy": _string(spec.policy),
        "launch_order": _string(spec.launch_order),
        "hardware_queues": str(spec.hardware_queues),
        "resident_grids": str(spec.resident_grids),
        "launch_latency_ns": str(spec.launch_latency_ns),
        "completion_latency_ns": str(spec.completion_latency_ns),
        "exit_latency_ns": str(spec.exit_latency_ns),
        "event_latency_ns": str(spec.event_latency_ns),
        "legacy_latency_ns": str(spec.legacy_latency_ns),
        "launch_switch_ns": str(spec.launch_switch_ns),
    }
    title = spec.title.encode("ascii", "replace").decode()
    return (
        f"// {' '.join(title.split())}, written by `tbsched devices --cpp`.\n"
        "// clang-format off\n"
        "#pragma once\n\n"
        '#include "tbsched/hardware/device_spec.h"\n\n'
        f"inline tbsched::DeviceSpec {_identifier(spec.name)}() {{\n"
        f"  return {_braces(members, 6)};\n"
        "}\n"
    )


def _identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return plain if plain[:1].isalpha() else f"device_{plain}"


def _string(text: str) -> str:
    """A C++ literal; octal escapes end after three digits, whatever follows."""
    quoted = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "replace")
    )
    return f'"{"".join(quoted)}"'


def _flag(value: bool) -> str:
    return json.dumps(value)


def _numbers(values: Iterable[int], indent: int) -> str:
    row = "{" + ", ".join(map(str, values)) + "}"
    if len(row) + indent + 36 <= _WIDTH:
        return row
    pad = " " * indent
    lines = textwrap.wrap(row[1:-1], _WIDTH - indent, break_on_hyphens=False)
    return "{\n" + "".join(f"{pad}{line}\n" for line in lines) + pad[:-4] + "}"


def _braces(members: dict[str, str], indent: int) -> str:
    pad = " " * indent
    rows = "".join(f"{pad}.{name} = {value},\n" for name, value in members.items())
    return "{\n" + rows + pad[:-4] + "}"
