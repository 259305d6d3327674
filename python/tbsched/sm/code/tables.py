"""The figures that tbsched ships, of GPUs that were measured."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from typing import Any

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.sm.characterization.figures import Figures, Measured, Point, Skew
from tbsched.sm.characterization.loops import Mode
from tbsched.sm.characterization.results import Characterization

_FOLDER = resources.files("tbsched.sm.code") / "shipped"
_MEASURED = ("throughput", "all_sms", "scheduling_wait", "dependence_wait")


def measured(device: str | os.PathLike[str] | DeviceSpec = "h200") -> Characterization:
    """Returns the figures of a GPU's instructions that tbsched ships; no GPU is needed.

    Args:
        device: a name, the path of a ``.toml`` file, or a spec. A GPU that was not measured has the
            figures of the one of its compute capability that was.

    Returns:
        ``device`` of it says which GPU was measured, when, and with which tools.

    Raises:
        ValueError: none of its compute capability was measured.

    Example:
        >>> tb.sm.measured("h200")["fp64.fma"].least_stall
        8
    """
    spec = find_device(device)
    shipped = {path.name.removesuffix(".json"): path for path in _FOLDER.iterdir()}
    names = [
        spec.name,
        *(name for name in shipped if _have_same_capability(spec, find_device(name))),
    ]
    name = next((name for name in names if name in shipped), None)
    if name is None:
        raise ValueError(
            f"measured: no GPU like {spec.name} was measured, only {', '.join(sorted(shipped))}; "
            "tb.sm.characterize measures one"
        )
    return _read(name)


def _have_same_capability(spec: DeviceSpec, other: DeviceSpec) -> bool:
    return spec.compute_capability == other.compute_capability


@functools.cache
def _read(name: str) -> Characterization:
    data = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return Characterization(data["device"], tuple(map(_figures, data["figures"])))


def _figures(row: Mapping[str, Any]) -> Figures:
    """Returns the figures from the data that ``views.data`` makes."""
    values = {field.name: row[field.name] for field in fields(Figures)}
    for name in _MEASURED:
        if values[name] is not None:
            values[name] = Measured(**values[name])
    for name in ("even", "uneven"):
        if values[name] is not None:
            values[name] = Skew(**values[name])
    values["least_warps"] = {
        (Mode(entry["mode"]), entry["distance"]): entry["warps"] for entry in row["least_warps"]
    }
    values["ends"] = {
        Point(Mode(entry["mode"]), entry["distance"], warps): clocks
        for entry in row["ends"]
        for warps, clocks in enumerate(entry["clocks"], 1)
        if clocks is not None
    }
    return Figures(**values)
