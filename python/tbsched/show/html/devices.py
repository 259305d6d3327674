"""Devices as HTML: their map, and every value with its source."""

from __future__ import annotations

from tbsched.hardware.spec import DeviceSpec
from tbsched.show.html.pages import card
from tbsched.show.html.parts import folded_html, table_html, tiles_html
from tbsched.show.html.svg.sm_map import Fill, Tile, map_html
from tbsched.show.layout.topology import topology_of
from tbsched.show.text.devices import values_of
from tbsched.show.text.tables import table_of
from tbsched.show.words import size_words

_STEPS = 8  # of the colours of preference


def device_html(spec: DeviceSpec) -> str:
    """Its map, the first choice among equal SMs darkest, and a row per value."""
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
        map_html(topology, tiles, "SMs by TPC and GPC; of equally suitable SMs the darker first"),
        folded_html("Every value, and where it comes from", table_html(table)),
        sub=f"compute capability {spec.compute_capability}, policy {spec.policy}",
    )
