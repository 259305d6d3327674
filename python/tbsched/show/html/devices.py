"""Devices as HTML: their map, and every value with its source. Partitions: their SMs."""

from __future__ import annotations

from tbsched.hardware.differences import DeviceDiff
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.partition import Partition
from tbsched.show.html.pages import card
from tbsched.show.html.parts import folded_html, table_html, text_html, tiles_html
from tbsched.show.html.svg.sm_map import Fill, Tile, map_html
from tbsched.show.layout.topology import topology_of
from tbsched.show.text.devices import (
    device_diff_parts,
    device_diff_short,
    differences_table,
    partition_short,
    values_of,
)
from tbsched.show.text.tables import table_of
from tbsched.show.words import size_words
from tbsched.traces.placement import DeviceInfo

_HEADING = "SMs by TPC and GPC; the stronger the colour, the sooner among equally suitable SMs"
_OWN = Fill(1.0, style="p0")  # of an SM of a partition
_STEPS = 8  # of the colours of preference


def device_html(spec: DeviceSpec) -> str:
    """Its map, the first choice among equal SMs in the strongest colour, and a row per value."""
    topology = topology_of(spec)
    tiles = []
    for sm in range(spec.sms):
        title = f"{topology.place_of(sm)}\n{topology.preference_of(sm)}"
        step = topology.rank[sm] * _STEPS // spec.sms
        fill = Fill(1.0, style=f"p{step}")
        tiles.append(Tile(title, (fill,), str(sm), "on" if step < _STEPS // 2 else "in"))
    rows = [
        (key, str(value), f"{origin.kind}: {origin.source}")
        for key, value, origin in values_of(spec)
    ]
    table = table_of(("value", "is", "source"), rows, left=(0, 1, 2))
    return card(
        f"{spec.name}: {spec.title}",
        tiles_html(
            (f"{spec.sms:,}", "SMs"),
            (f"{spec.tpcs:,}", "TPCs"),
            (f"{len(spec.gpcs) or 'unknown'}", "GPCs"),
            (f"{spec.warps_per_sm}", "warps per SM"),
            (f"{spec.blocks_per_sm}", "blocks per SM"),
            (size_words(spec.shared_memory_configurations[-1]), "shared memory per SM"),
        ),
        map_html(topology, tiles, _HEADING),
        folded_html("Every value, and where it comes from", table_html(table)),
        sub=f"compute capability {spec.compute_capability}, policy {spec.policy}",
    )


def device_diff_html(diff: DeviceDiff) -> str:
    """A row per value that differs; those of which only the source differs are folded."""
    head, table, more = device_diff_parts(diff)
    parts = [text_html([head])]
    if table is not None:
        parts.append(table_html(table))
    parts.append(text_html(more, style="note"))
    if diff.sources:
        other = table_html(differences_table(diff.sources))
        parts.append(folded_html("Equal values that come from elsewhere", other))
    return card(device_diff_short(diff), *parts)


def partition_html(partition: Partition) -> str:
    """A map of the SMs up to its last one; it does not know of which GPU they are."""
    own = set(partition.sms)
    tiles = [
        Tile(f"SM {sm}", (_OWN,) if sm in own else (), str(sm), "on" if sm in own else "in")
        for sm in range(max(own, default=0) + 1)
    ]
    topology = topology_of(DeviceInfo("", len(tiles)))
    return card(partition_short(partition), map_html(topology, tiles, "The SMs of the partition"))
