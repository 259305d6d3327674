"""Which SM is in which TPC and GPC, and which one is preferred, of a device or of a trace's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tbsched.hardware.catalogue import device_titled
from tbsched.hardware.spec import DeviceSpec
from tbsched.traces.placement import DeviceInfo

_ROW, _FEW = 16, 256  # SMs of a row of so many where nothing is known of GPCs; else twice as many


@dataclass(frozen=True, slots=True)
class Row:
    """SMs that are drawn together.

    Attributes:
        title: ``GPC 0``; ``no GPC`` for TPCs of none; ``SM 16`` where the GPCs are not known.
        tpcs: the SMs of each of its TPCs.
    """

    title: str
    tpcs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """Where each SM is.

    Attributes:
        rows: all SMs, by GPC if the GPCs are known.
        tpc_of: the TPC of each SM; empty if it is not known.
        gpc_of: the title of each SM's GPC; empty if the GPCs are not known.
        rank: each SM's place among equally suitable ones, 0 is the first choice; empty if unknown.
        source: where this is known from, in words; empty if it is the device's own.
    """

    rows: tuple[Row, ...]
    tpc_of: tuple[int, ...] = ()
    gpc_of: tuple[str, ...] = ()
    rank: tuple[int, ...] = ()
    source: str = ""

    def place_of(self, sm: int) -> str:
        """Returns ``SM 5, TPC 2, GPC 1``, as far as it is known."""
        parts = [f"SM {sm}"]
        if self.tpc_of:
            parts.append(f"TPC {self.tpc_of[sm]}")
        if self.gpc_of:
            parts.append(self.gpc_of[sm])
        return ", ".join(parts)

    def preference_of(self, sm: int) -> str:
        """Returns the place of an SM in the order of preference, in words; empty: that is not
        known."""
        if not self.rank:
            return ""
        return f"place {self.rank[sm] + 1} of {len(self.rank)} in the order of preference"


def topology_of(device: DeviceSpec | DeviceInfo) -> Topology:
    """Returns the map of a device, or of what a trace is of.

    A prediction brings its map. Of an observation it is looked up among the devices that are
    shipped, by the vendor's name and the number of SMs. Other boards of the kind may differ.
    """
    if isinstance(device, DeviceSpec):
        return _made(device.sms, device.sms_per_tpc, device.gpcs, device.sm_preference)
    topology_data: Any = device.details.get("topology")
    try:
        return _made(
            device.sms,
            topology_data["sms_per_tpc"],
            topology_data["gpcs"],
            topology_data["sm_preference"],
        )
    except (TypeError, KeyError, IndexError):  # there is none, or what a file has is no map
        return _looked_up(device.name, device.sms)


@functools.lru_cache(maxsize=64)
def _looked_up(title: str, sms: int) -> Topology:
    """Returns the map of the shipped device with this title, or SMs without a map."""
    spec = device_titled(title, sms)
    if spec is not None:
        topology = topology_of(spec)
        source = f"The map is that of {spec.name}; other boards may have another."
        return replace(topology, source=f"{source} {topology.source}".strip())
    singles = [(sm,) for sm in range(sms)]
    return Topology(_in_rows(singles), source="The map of TPCs and GPCs is not known.")


def _made(
    sms: int, sms_per_tpc: int, gpcs: Sequence[Sequence[int]], preference: Sequence[int]
) -> Topology:
    """Returns a topology of TPCs, GPCs and an order of preference."""
    tpcs = [
        tuple(range(first, min(first + sms_per_tpc, sms))) for first in range(0, sms, sms_per_tpc)
    ]
    rank = [0] * sms
    for index, sm in enumerate(preference):
        rank[sm] = index
    tpc_by_sm = tuple(sm // sms_per_tpc for sm in range(sms))
    if not gpcs:
        return Topology(
            _in_rows(tpcs), tpc_by_sm, (), tuple(rank), "Which TPC is in which GPC is not known."
        )
    rows = [Row(f"GPC {index}", tuple(tpcs[tpc] for tpc in gpc)) for index, gpc in enumerate(gpcs)]
    title_by_tpc = {tpc: f"GPC {index}" for index, gpc in enumerate(gpcs) for tpc in gpc}
    outside = tuple(tpc_sms for tpc, tpc_sms in enumerate(tpcs) if tpc not in title_by_tpc)
    if outside:
        rows.append(Row("no GPC", outside))
    gpc_by_sm = tuple(title_by_tpc.get(tpc, "no GPC") for tpc in tpc_by_sm)
    return Topology(tuple(rows), tpc_by_sm, gpc_by_sm, tuple(rank))


def _in_rows(tpcs: Sequence[tuple[int, ...]]) -> tuple[Row, ...]:
    """Returns rows of as many TPCs, where nothing says which are together."""
    sms = sum(map(len, tpcs))
    step = max(1, (_ROW if sms <= _FEW else 2 * _ROW) // len(tpcs[0]))
    return tuple(
        Row(f"SM {tpcs[first][0]}", tuple(tpcs[first : first + step]))
        for first in range(0, len(tpcs), step)
    )
