"""Values in which two devices differ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from tbsched.counting import counted
from tbsched.hardware.differences import DeviceDiff, Difference
from tbsched.hardware.spec import Provenance
from tbsched.views.cards import card, folded_html, table_html, text_html
from tbsched.views.devices import sourced
from tbsched.views.layout.names import cut
from tbsched.views.plain import fields
from tbsched.views.tables import Lines, Table, table_of

_TPCS_SHOWN = 12


def device_diff_short(diff: DeviceDiff) -> str:
    """In how many values which devices differ."""
    count = len(diff.values)
    return f"{diff.a.name} and {diff.b.name} differ in {count} of {diff.compared} values"


def device_diff_text(diff: DeviceDiff) -> Lines:
    """Each value that differs, and where both come from."""
    head, table, more = device_diff_parts(diff)
    return [head, *([] if table is None else [table]), *more]


def device_diff_parts(diff: DeviceDiff) -> tuple[str, Table | None, list[str]]:
    """Returns the text before the table, the table if there is one, and the text after it."""
    names = f"{diff.a.name} (a) and {diff.b.name} (b)"
    differing = len(diff.values)
    head = (
        f"{names} differ in {differing} of {diff.compared} values."
        if differing
        else f"{names} have the same {diff.compared} values."
    )
    more = [f"{row.path}: {_moved(row)}" for row in diff.values if isinstance(row.a, tuple)]
    if diff.sources:
        count = counted(len(diff.sources), "equal value")
        more.append(f"{count} {'has' if len(diff.sources) == 1 else 'have'} other sources.")
    return head, differences_table(diff.values) if differing else None, more


def differences_table(rows: Iterable[Difference]) -> Table:
    """Returns a table with a row per value, with the source of both."""
    return table_of(
        ("value", "a", "b", "a is from", "b is from"),
        (
            (row.path, cut(str(row.a)), cut(str(row.b)), *map(_from, (row.a_origin, row.b_origin)))
            for row in rows
        ),
        left=range(5),
    )


def _from(origin: Provenance | None) -> str:
    return "unknown" if origin is None else f"{origin.kind}: {origin.source}"


def _moved(row: Difference) -> str:
    """Returns which items are only in one of two lists, in words."""
    if row.path == "topology.gpcs":
        return _other_gpcs(row.a, row.b)
    only = [
        f"only in {side}: {cut(', '.join(map(str, only_items)))}"
        for side, only_items in (
            ("a", [item for item in row.a if item not in set(row.b)]),
            ("b", [item for item in row.b if item not in set(row.a)]),
        )
        if only_items
    ]
    if only:
        return "; ".join(only)
    positions = [n for n, (a, b) in enumerate(zip(row.a, row.b, strict=True)) if a != b]
    first = f"the first one holds {row.a[positions[0]]} in a, {row.b[positions[0]]} in b"
    return f"{len(positions)} of {len(row.a)} places differ; {first}"


def _other_gpcs(a: tuple[tuple[int, ...], ...], b: tuple[tuple[int, ...], ...]) -> str:
    """Returns the TPCs that are in another GPC; each GPC goes by its number."""
    if not a or not b:
        return f"unknown in {'b' if a else 'a'}"
    a_gpcs, b_gpcs = (
        {tpc: index for index, tpcs in enumerate(gpcs) for tpc in tpcs} for gpcs in (a, b)
    )
    tpcs = sorted(tpc for tpc in a_gpcs | b_gpcs if a_gpcs.get(tpc) != b_gpcs.get(tpc))
    shown = [
        f"TPC {tpc} is in {_gpc(a_gpcs.get(tpc))} in a, in {_gpc(b_gpcs.get(tpc))} in b"
        for tpc in tpcs[:_TPCS_SHOWN]
    ]
    if len(tpcs) > _TPCS_SHOWN:
        shown.append(f"and {len(tpcs) - _TPCS_SHOWN} TPCs more")
    return "; ".join(shown)


def _gpc(gpc: int | None) -> str:
    return "no GPC" if gpc is None else f"GPC {gpc}"


def device_diff_html(diff: DeviceDiff) -> str:
    """Returns HTML: a row per value that differs; values with other sources alone are folded."""
    head, table, more = device_diff_parts(diff)
    parts: list[Markup | Table] = [text_html([head])]
    if table is not None:
        parts.append(table)
    parts.append(text_html(more, style="note"))
    if diff.sources:
        sources_table = table_html(differences_table(diff.sources))
        parts.append(folded_html("Equal values that come from elsewhere", sources_table))
    return card(device_diff_short(diff), *parts)


def device_diff_columns(diff: DeviceDiff) -> dict[str, Any]:
    """Returns columns: each value that differs, as JSON, and where both come from."""
    a_origins = [row.a_origin for row in diff.values]
    b_origins = [row.b_origin for row in diff.values]
    return {
        "field": [row.path for row in diff.values],
        "a": [json.dumps(row.a) for row in diff.values],
        "b": [json.dumps(row.b) for row in diff.values],
        "a_provenance": [None if origin is None else origin.kind for origin in a_origins],
        "b_provenance": [None if origin is None else origin.kind for origin in b_origins],
        "a_source": [None if origin is None else origin.source for origin in a_origins],
        "b_source": [None if origin is None else origin.source for origin in b_origins],
    }


def device_diff_data(diff: DeviceDiff) -> dict[str, Any]:
    """Returns JSON data: both devices by name, and the values that differ, or whose sources do."""
    rows = {
        "values": list(map(_difference_data, diff.values)),
        "sources": list(map(_difference_data, diff.sources)),
    }
    return {**fields(diff, "a=a.name b=b.name compared"), **rows}


def _difference_data(row: Difference) -> dict[str, Any]:
    a, b = sourced(row.a, row.a_origin), sourced(row.b, row.b_origin)
    return {"path": row.path, "a": a, "b": b}
