"""Devices and partitions as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from tbsched.hardware.differences import DeviceDiff, Difference
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.program.partition import Partition
from tbsched.show.layout.names import cut
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted, sms_words

_TPCS_SHOWN = 12


def device_short(spec: DeviceSpec) -> str:
    """Its name, size and policy."""
    return f"{spec.name}, {spec.title}, {spec.sms} SMs, policy {spec.policy}"


def device_text(spec: DeviceSpec) -> str:
    """Every value that its file states or inherits, and the source of it."""
    lines = [f"{spec.name}: {spec.title}"]
    for key, value, origin in values_of(spec):
        lines.append(f"  {key} = {value}  [{origin.kind}: {origin.source}]")
    return "\n".join(lines)


def values_of(spec: DeviceSpec) -> Iterator[tuple[str, object, Provenance]]:
    """Every value whose source is known: its key in the file, itself and the source."""
    for key, origin in spec.provenance.items():
        field = key.rsplit(".", 1)[1]
        holder = spec.mechanisms if key.startswith("mechanisms.") else spec
        yield key, getattr(holder, field), origin


def device_diff_short(diff: DeviceDiff) -> str:
    """In how many values which devices differ."""
    number = len(diff.values)
    return f"{diff.a.name} and {diff.b.name} differ in {number} of {diff.compared} values"


def device_diff_text(diff: DeviceDiff) -> str:
    """Each value that differs, and where both come from."""
    head, table, more = device_diff_parts(diff)
    return "\n".join([head, *([] if table is None else [render(table)]), *more])


def device_diff_parts(diff: DeviceDiff) -> tuple[str, Table | None, list[str]]:
    """The text in three parts: before the table, the table if there is one, and after it."""
    names = f"{diff.a.name} (a) and {diff.b.name} (b)"
    number = len(diff.values)
    head = (
        f"{names} differ in {number} of {diff.compared} values."
        if number
        else f"{names} have the same {diff.compared} values."
    )
    more = [f"{row.path}: {_moved(row)}" for row in diff.values if isinstance(row.a, tuple)]
    if diff.sources:
        count = counted(len(diff.sources), "equal value")
        more.append(f"{count} {'has' if len(diff.sources) == 1 else 'have'} other sources.")
    return head, differences_table(diff.values) if number else None, more


def differences_table(rows: Iterable[Difference]) -> Table:
    """A row per value, with the source of both."""
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
    """Where two lists differ, in words."""
    if row.path == "topology.gpcs":
        return _other_gpcs(row.a, row.b)
    only = [
        f"only in {which}: {cut(', '.join(map(str, own)))}"
        for which, own in (
            ("a", [item for item in row.a if item not in set(row.b)]),
            ("b", [item for item in row.b if item not in set(row.a)]),
        )
        if own
    ]
    if only:
        return "; ".join(only)
    places = [n for n, (a, b) in enumerate(zip(row.a, row.b, strict=True)) if a != b]
    first = f"the first one holds {row.a[places[0]]} in a, {row.b[places[0]]} in b"
    return f"{len(places)} of {len(row.a)} places differ; {first}"


def _other_gpcs(a: tuple[tuple[int, ...], ...], b: tuple[tuple[int, ...], ...]) -> str:
    """The TPCs that are in another GPC; each GPC goes by its number."""
    if not a or not b:
        return f"unknown in {'b' if a else 'a'}"
    own, other = (
        {tpc: number for number, tpcs in enumerate(gpcs) for tpc in tpcs} for gpcs in (a, b)
    )
    tpcs = sorted(tpc for tpc in own | other if own.get(tpc) != other.get(tpc))
    shown = [
        f"TPC {tpc} is in {_gpc(own.get(tpc))} in a, in {_gpc(other.get(tpc))} in b"
        for tpc in tpcs[:_TPCS_SHOWN]
    ]
    if len(tpcs) > _TPCS_SHOWN:
        shown.append(f"and {len(tpcs) - _TPCS_SHOWN} TPCs more")
    return "; ".join(shown)


def _gpc(number: int | None) -> str:
    return "no GPC" if number is None else f"GPC {number}"


def partition_short(partition: Partition) -> str:
    """How many SMs it has, and which part of which split it is."""
    words = counted(len(partition), "SM")
    if partition.split is None:
        return words
    part = "what is left over" if partition.group is None else f"group {partition.group}"
    return f"{words}, {part} of {partition.split}"


def partition_text(partition: Partition) -> str:
    """Its SMs."""
    return f"{partition_short(partition)}\nSM {sms_words(partition.sms) or 'none'}"
