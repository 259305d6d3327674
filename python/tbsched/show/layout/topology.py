"""Which SM is in which TPC and GPC, and which one is preferred, of a device or of a trace's."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tbsched.hardware.catalogue import device, devices
from tbsched.hardware.spec import DeviceSpec
from tbsched.traces.placement import DeviceInfo

_ROW = 16  # SMs of a row where nothing is known of GPCs


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
        """``SM 5, TPC 2, GPC 1``, as far as it is known."""
        parts = [f"SM {sm}"]
        if self.tpc_of:
            parts.append(f"TPC {self.tpc_of[sm]}")
        if self.gpc_of:
            parts.append(self.gpc_of[sm])
        return ", ".join(parts)

    def preference_of(self, sm: int) -> str:
        """Its place in the order of preference, in words; empty if that is not known."""
        if not self.rank:
            return ""
        return f"place {self.rank[sm] + 1} of {len(self.rank)} in the order of preference"


def topology_of(what: DeviceSpec | DeviceInfo) -> Topology:
    """The map of a device, or of what a trace is of.

    A prediction's is that of the model. Of an observation it is looked up among the devices that
    are shipped, by the vendor's name and the number of SMs. Other boards of the kind may differ.
    """
    if isinstance(what, DeviceSpec):
        return _of_spec(what, "")
    model = str(what.details.get("model", ""))
    return _known(what.name, what.sms, model)


@functools.lru_cache(maxsize=64)
def _known(title: str, sms: int, model: str) -> Topology:
    for name in ([model] if model else []) + list(devices()):
        try:
            spec = device(name)
        except ValueError:  # a device of the user's own
            continue
        if (spec.title, spec.sms) == (title, sms):
            source = "" if name == model else f"map of {name}; other boards may have another"
            return _of_spec(spec, source)
    rows = (
        Row(f"SM {first}", tuple((sm,) for sm in range(first, min(first + _ROW, sms))))
        for first in range(0, sms, _ROW)
    )
    return Topology(tuple(rows), source="the map of TPCs and GPCs is not known")


@functools.lru_cache(maxsize=64)
def _of_spec(spec: DeviceSpec, source: str) -> Topology:
    each = spec.sms_per_tpc
    tpcs = [tuple(range(n * each, min((n + 1) * each, spec.sms))) for n in range(spec.tpcs)]
    rank = [0] * spec.sms
    for place, sm in enumerate(spec.sm_preference):
        rank[sm] = place
    tpc_of = tuple(sm // each for sm in range(spec.sms))
    if not spec.gpcs:
        step = max(1, _ROW // each)
        rows = [
            Row(f"SM {first * each}", tuple(tpcs[first : first + step]))
            for first in range(0, len(tpcs), step)
        ]
        return Topology(tuple(rows), tpc_of, (), tuple(rank), source or "the GPCs are not known")
    title_of = {tpc: f"GPC {number}" for number, gpc in enumerate(spec.gpcs) for tpc in gpc}
    rows = [
        Row(f"GPC {number}", tuple(tpcs[tpc] for tpc in gpc))
        for number, gpc in enumerate(spec.gpcs)
    ]
    outside = tuple(tpcs[tpc] for tpc in range(len(tpcs)) if tpc not in title_of)
    if outside:
        rows.append(Row("no GPC", outside))
    gpc_of = tuple(title_of.get(tpc, "no GPC") for tpc in tpc_of)
    return Topology(tuple(rows), tpc_of, gpc_of, tuple(rank), source)
