"""Devices: their map, and every value with its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.views.cards import card, folded_html, table_html, tiles_html
from tbsched.views.layout.topology import topology_of
from tbsched.views.svg.sm_map import Fill, Tile, map_html
from tbsched.views.tables import table_of
from tbsched.views.terminal import visible
from tbsched.views.words import size_words

_HEADING = "SMs by TPC and GPC; the stronger the colour, the sooner among equally suitable SMs"
_STEPS = 8  # of the colours of preference


def device_short(spec: DeviceSpec) -> str:
    """Its name, size and policy."""
    return f"{spec.name}, {spec.title}, {spec.sms} SMs, policy {spec.policy}"


def device_text(spec: DeviceSpec) -> str:
    """Returns every value that its file states or inherits, and the source of it."""
    lines = [visible(f"{spec.name}: {spec.title}")]
    for key, value, origin in values_of(spec):
        lines.append(visible(f"  {key} = {value}  [{origin.kind}: {origin.source}]"))
    return "\n".join(lines)


def values_of(spec: DeviceSpec) -> Iterator[tuple[str, object, Provenance]]:
    """Yields every value whose source is known: its key in the file, itself and the source."""
    for key, origin in spec.provenance.items():
        field = key.rsplit(".", 1)[1]
        holder = spec.mechanisms if key.startswith("mechanisms.") else spec
        yield key, getattr(holder, field), origin


def device_html(spec: DeviceSpec) -> str:
    """Returns HTML: a map, stronger colours for SMs that are preferred, and a row per value."""
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


def device_columns(spec: DeviceSpec) -> dict[str, Any]:
    """Returns columns: each field with its value, as JSON, and where that comes from."""
    fields = [field for field in FIELDS if field.section]
    origins = [spec.provenance.get(field.path) for field in fields]
    return {
        "field": [field.path for field in fields],
        "value": [json.dumps(field.of(spec)) for field in fields],
        "provenance": [None if origin is None else origin.kind for origin in origins],
        "source": [None if origin is None else origin.source for origin in origins],
    }


def device_data(spec: DeviceSpec) -> dict[str, Any]:
    """Each field with its value, and where that comes from."""
    values = {field.path: _value(spec, field) for field in FIELDS if field.section}
    return {"name": spec.name, "title": spec.title, "values": values}


def _value(spec: DeviceSpec, field: Field) -> dict[str, Any]:
    return sourced(field.of(spec), spec.provenance.get(field.path))


def sourced(value: object, origin: Provenance | None) -> dict[str, Any]:
    kind, source = (None, None) if origin is None else (origin.kind, origin.source)
    return {"value": value, "provenance": kind, "source": source}
