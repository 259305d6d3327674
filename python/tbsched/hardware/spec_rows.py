"""What a device's file may say: rows of TOML, each a value with its provenance."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from typing import Any

PROVENANCES = ("paper", "vendor", "measured", "assumed")


def load(file: Traversable) -> dict[str, Any]:
    """The TOML of a file, as it stands."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ValueError(f"device: no file {file}") from None
    except OSError as error:
        raise ValueError(f"device: {file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not TOML: {error}") from None


def _whole(where: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{where}: an integer is needed, got {value!r}")
    return value


def string(where: str, value: object) -> str:
    """The value, which must be a string."""
    if not isinstance(value, str):
        raise ValueError(f"{where}: a string is needed, got {value!r}")
    return value


def _flag(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where}: true or false is needed, got {value!r}")
    return value


def _whole_list(where: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: a list is needed, got {value!r}")
    return tuple(_whole(where, item) for item in value)


def _ranges(where: str, value: object) -> tuple[int, ...]:
    """Rows of [start, stop, step], as Python's range."""
    if not isinstance(value, list):
        raise ValueError(f"{where}: a list of [start, stop, step] is needed, got {value!r}")
    rows = [_whole_list(where, row) for row in value]
    if any(len(row) != 3 or row[2] == 0 or max(map(abs, row)) > 10**6 for row in rows):
        raise ValueError(f"{where}: each row must be [start, stop, step], got {value!r}")
    return tuple(sm for row in rows for sm in range(*row))


def _nested_list(where: str, value: object) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: a list of lists is needed, got {value!r}")
    return tuple(_whole_list(where, row) for row in value)


# section.key of the file -> how to read its value into the DeviceSpec field of that key
READERS: dict[str, Callable[[str, object], Any]] = {
    "device.title": string,
    "device.compute_capability": string,
    "topology.sms": _whole,
    "topology.sms_per_tpc": _whole,
    "topology.gpcs": _nested_list,
    "topology.sm_preference": _ranges,
    "limits.processing_blocks": _whole,
    "limits.blocks_per_sm": _whole,
    "limits.cluster_blocks_per_sm": _whole,
    "limits.warps_per_sm": _whole,
    "limits.registers_per_sm": _whole,
    "limits.threads_per_block": _whole,
    "limits.registers_per_thread": _whole,
    "limits.max_cluster": _whole,
    "allocation.register_unit": _whole,
    "allocation.shared_memory_unit": _whole,
    "allocation.shared_memory_reserve": _whole,
    "allocation.shared_memory_per_block": _whole,
    "allocation.shared_memory_configurations": _whole_list,
    "allocation.local_memory_initial": _whole,
    "allocation.local_memory_unit": _whole,
    "mechanisms.strict_round_robin": _flag,
    "mechanisms.warp_skip": _flag,
    "mechanisms.registers": string,
    "mechanisms.shared_memory": string,
    "mechanisms.shared_memory_configuration": _flag,
    "mechanisms.configuration_per_tpc": _flag,
    "mechanisms.configuration_headroom": _flag,
    "mechanisms.explicit_carveout_is_upper_bound": _flag,
    "mechanisms.local_memory_configuration": _flag,
    "mechanisms.clusters_seek_idle_sms": _flag,
    "mechanisms.clusters_take_whole_tpcs": _flag,
    "scheduler.policy": string,
    "scheduler.launch_order": string,
    "scheduler.hardware_queues": _whole,
    "scheduler.resident_grids": _whole,
    "scheduler.launch_latency_ns": _whole,
    "scheduler.completion_latency_ns": _whole,
    "scheduler.exit_latency_ns": _whole,
    "scheduler.event_latency_ns": _whole,
    "scheduler.legacy_latency_ns": _whole,
    "scheduler.launch_switch_ns": _whole,
}
_SECTIONS = {path.split(".")[0] for path in READERS}


def rows_of(
    file: Traversable, sections: Mapping[str, object]
) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    """By ``section.key``, the values of a file, and the kind and source of their provenance."""
    values: dict[str, Any] = {}
    provenance: dict[str, tuple[str, str]] = {}
    for section, rows in sections.items():
        if not isinstance(rows, dict) or section not in _SECTIONS:
            raise ValueError(f"{file}: unknown key {section!r}")
        for key, row in rows.items():
            path = f"{section}.{key}"
            if path not in READERS:
                raise ValueError(f"{file}: unknown key {path!r}")
            where = f"{file}: {path}"
            value, provenance[path] = _row(where, row)
            values[path] = READERS[path](where, value)
    return values, provenance


def _row(where: str, row: object) -> tuple[object, tuple[str, str]]:
    if not isinstance(row, dict) or set(row) != {"value", "provenance", "source"}:
        raise ValueError(f"{where}: {{ value, provenance, source }} is needed, got {row!r}")
    if row["provenance"] not in PROVENANCES:
        raise ValueError(
            f"{where}: provenance {row['provenance']!r} is not one of {', '.join(PROVENANCES)}"
        )
    return row["value"], (row["provenance"], string(f"{where}.source", row["source"]))
