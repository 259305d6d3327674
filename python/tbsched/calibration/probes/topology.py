"""TPCs and GPCs: the SMs on which the blocks of one cluster are together."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as ListOf

from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.finding import Finding, Found, assumed, told
from tbsched.calibration.probes.limits import MOST_CLUSTER
from tbsched.program.sequence import Event, Sequence
from tbsched.traces.trace import Trace

_TPC, _GPCS = "topology.sms_per_tpc", "topology.gpcs"
_SLOTS = "limits.cluster_blocks_per_sm"
_WAVES = 3
_SIZES_OF_TPCS = (1, 2, 3, 4)


def ask(lab: Lab, found: Found) -> list[Finding]:
    """Clusters of each size, more than the GPU holds, on an idle GPU and beside others."""
    largest = found["max_cluster"]
    if largest < 2:
        because = "this device has no clusters, which would show it"
        return [
            assumed(_TPC, 2, because),
            assumed(_GPCS, (), because),
            assumed(_SLOTS, 32, "this device has no clusters, and it does not matter"),
        ]
    sequences = [
        _clusters(size, lab.sms, beside) for beside in (0, 1, 5) for size in found.notes["clusters"]
    ]
    traces = lab.run(sequences)
    groups = [cluster for trace in traces for cluster in together(trace)]
    findings = read(groups)
    if largest < MOST_CLUSTER and any(
        len(set(row)) * findings[0].value > largest for row in findings[1].value
    ):
        because = "one more is refused, and a GPC has more SMs"
        findings.append(told("limits.max_cluster", largest, because))
    (full,) = lab.run([Sequence([small(blocks=2 * 64 * lab.sms, cluster=2)])])
    return [*findings, _slots(full, found)]


def _clusters(size: int, sms: int, beside: int) -> Sequence:
    """Clusters of a size, beside so many single blocks; a size that no GPC holds just waits."""
    events: list[Event] = [small(blocks=beside)] if beside else []
    return Sequence([*events, small(blocks=_WAVES * sms // size * size, cluster=size)])


def together(trace: Trace) -> list[tuple[int, ...]]:
    """The SMs of each cluster that was placed."""
    size = trace.sequence.launches[-1].cluster
    rows = trace[-1].smid.reshape(-1, size)
    return [tuple(sorted(set(row.tolist()))) for row in rows if (row >= 0).all()]


def read(clusters: ListOf[tuple[int, ...]]) -> list[Finding]:
    """From the SMs of clusters; those of 3 and more are never outside a GPC."""
    pairs = {cluster for cluster in clusters if len(cluster) == 2}
    fits = [size for size in _SIZES_OF_TPCS if all(a // size == b // size for a, b in pairs)]
    gpcs = _joined(cluster for cluster in clusters if len(cluster) > 2)
    # If clusters of 2 do not keep to TPCs of any size, every SM stands for itself.
    size = fits[0] if fits else 1
    rows = _rows(gpcs, size)
    whole = {sm for row in rows for tpc in row for sm in range(tpc * size, tpc * size + size)}
    count = sum(len(cluster) > 2 for cluster in clusters)
    because = f"{count} clusters of 3 and more kept to these SMs"
    if not fits or not pairs:
        why = "clusters of 2 were not in TPCs of one size"
        return [
            assumed(_TPC, size, why, _SIZES_OF_TPCS[1:]),
            assumed(_GPCS, rows, f"{because}; how many SMs a TPC has is not told"),
        ]
    tpc = told(_TPC, size, f"clusters of 2 were on {len(pairs)} pairs of SMs, each in one TPC")
    if whole != set().union(*gpcs):
        return [tpc, assumed(_GPCS, (), "clusters of 3 and more were not in whole TPCs")]
    return [tpc, told(_GPCS, rows, because)]


def _joined(clusters: Iterable[tuple[int, ...]]) -> list[set[int]]:
    """SMs that are together, directly or through others."""
    groups: list[set[int]] = []
    for cluster in clusters:
        apart = [group for group in groups if group.isdisjoint(cluster)]
        together = [group for group in groups if not group.isdisjoint(cluster)]
        groups = [*apart, set(cluster).union(*together)]
    return groups


def _rows(gpcs: Iterable[set[int]], size: int) -> tuple[tuple[int, ...], ...]:
    """TPCs of each GPC; the GPC of the first TPC comes first, which is a convention."""
    return tuple(sorted(tuple(sorted({sm // size for sm in gpc})) for gpc in gpcs))


def _slots(full: Trace, found: Found) -> Finding:
    """From clusters of 2 that fill the GPU."""
    held = full[0].occupancy(full.device.sms)
    most = int(held.max())
    if most < found["blocks_per_sm"] and most < found.notes["single"]:
        return told(_SLOTS, most, f"SMs held {most} small blocks in clusters, more waited")
    return assumed(_SLOTS, max(most, 32), f"SMs held {most} small blocks in clusters, as alone")
