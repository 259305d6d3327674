"""What NVIDIA documents per compute capability: ``compute_capabilities.toml``, with its sources."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tbsched.hardware.device_fields import FIELDS


@dataclass(frozen=True, slots=True)
class Documented:
    """What is documented for a compute capability.

    Attributes:
        limits: the values by the names of their fields, as a device has them.
        source: the documents.
        portable_cluster: blocks of a cluster that every such GPU allows; 1: it has no clusters.
    """

    limits: Mapping[str, Any]
    source: str
    portable_cluster: int


def documented(compute_capability: str) -> Documented | None:
    """What is documented for a compute capability, such as ``8.9``; None: nothing is known."""
    return _table().get(compute_capability)


def compute_capabilities() -> tuple[str, ...]:
    """Returns the compute capabilities with documented values, ascending."""
    return tuple(_table())


@functools.cache
def _table() -> dict[str, Documented]:
    """Returns what NVIDIA documents of each compute capability, by its name."""
    file = resources.files("tbsched.hardware") / "compute_capabilities.toml"
    rows = tomllib.loads(file.read_text("utf-8"))
    common = rows.pop("common")
    return {capability: _read({**common, **row}) for capability, row in rows.items()}


def _read(row: Mapping[str, Any]) -> Documented:
    """Returns what a row of the table documents."""
    limits = {
        field.name: field.read(field.path, row[field.name]) for field in FIELDS if field.name in row
    }
    return Documented(limits, row["source"], row.get("portable_cluster", 1))
