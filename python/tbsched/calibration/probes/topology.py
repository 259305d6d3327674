"""TPCs and GPCs: the SMs on which the blocks of one cluster are together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as ListOf
from dataclasses import replace
from itertools import combinations

import numpy as np

from tbsched.calibration.asking.elimination import explains
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import NO_RULE, Finding, KnownValues, Values, assumed, determined
from tbsched.calibration.probes.limits import MOST_CLUSTER
from tbsched.calibration.probes.preference import whole_sm
from tbsched.program.sequence import Event, Launch, Sequence
from tbsched.traces.trace import Trace

_TPC, _GPCS = "topology.sms_per_tpc", "topology.gpcs"
_SLOTS = "limits.cluster_blocks_per_sm"
_WAVES = 3
_SIZES_OF_TPCS = (2, 1, 3, 4)
_MAX_LONE = 10  # TPCs that are each alone in a GPC or in none; more are not all combined
# Random sequences per round, rounds without newly joined SMs that end the search, most rounds.
_AT_ONCE, _IDLE, _MAX_ROUNDS = 8, 2, 12
_ORDERS = 12  # sequences that show the order in which GPCs take turns
_Rows = tuple[tuple[int, ...], ...]


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures which TPCs are in which GPC, from the SMs that clusters of each size take on idle
    and partly full GPUs. Returns findings."""
    largest = known["max_cluster"]
    if largest < 2:
        because = "this device has no clusters, which would show it"
        known.irrelevant.add("gpcs")
        return [
            assumed(_TPC, 2, because),
            assumed(_GPCS, (), because),
            assumed(_SLOTS, 32, "this device has no clusters, and it does not matter"),
        ]
    clusters = _clusters_seen(lab, known)
    possible = maps(clusters, lab.sms)
    right = maps_in_turns(lab, known, clusters)
    findings = read(clusters, right) if right else _as_assumed(read(clusters, possible))
    if right:
        known.set_remaining(right)
    if right and largest < MOST_CLUSTER and min(largest_gpc(v, lab.sms) for v in right) > largest:
        because = "one more is refused, and a GPC has more SMs"
        findings.append(determined("limits.max_cluster", largest, because))
    (full,) = lab.run([Sequence([small(blocks=2 * 64 * lab.sms, cluster=2)])])
    return [*findings, _slots(full, known)]


def largest_gpc(values: Values, sms: int) -> int:
    """Returns the SMs of the largest GPC of a map; the last TPC may have fewer than the others."""
    size = values["sms_per_tpc"]
    return max((sum(sm // size in row for sm in range(sms)) for row in values["gpcs"]), default=0)


def _clusters_seen(lab: Lab, known: KnownValues) -> list[tuple[int, ...]]:
    """Returns the sets of SMs that clusters had, on idle and partly full GPUs."""
    sizes = known.notes["clusters"]
    single, whole_block = small(), whole_sm(known)
    count: Counter[tuple[int, ...]] = Counter()

    def seen_twice(sequences: list[Sequence]) -> list[tuple[int, ...]]:
        """Runs sequences, and returns all clusters seen twice so far; one run may be noise."""
        for runs in lab.runs(sequences):
            count.update(cluster for trace in runs for cluster in together(trace))
        return [cluster for cluster, times in count.items() if times > 1]

    clusters = seen_twice(
        [
            _clusters_after_blocks(single, size, lab.sms, single, blocks_before)
            for blocks_before in (0, 1, 5)
            for size in sizes
        ]
    )
    # As fewer and fewer SMs are free, each SM is once among the last two of its GPC.
    clusters = seen_twice(
        [
            _clusters_after_blocks(whole_block, 2, lab.sms, whole_block, blocks_before)
            for blocks_before in range(lab.sms - 1)
        ]
    )
    rng = np.random.default_rng(6)
    groups, idle = len(joined(clusters)), 0
    for _ in range(_MAX_ROUNDS):
        if idle == _IDLE:
            break
        drawn = [
            _clusters_after_blocks(
                whole_block if rng.random() < 0.5 else single,
                int(rng.choice(sizes)),
                lab.sms,
                whole_block,
                int(rng.integers(lab.sms)),
            )
            for _ in range(_AT_ONCE)
        ]
        clusters = seen_twice(drawn)
        before, groups = groups, len(joined(clusters))
        idle = idle + 1 if groups == before else 0
    return clusters


def _clusters_after_blocks(
    launch: Launch, size: int, sms: int, block: Launch, blocks_before: int
) -> Sequence:
    """Returns single blocks, followed by more clusters of a size than the GPU holds."""
    events: list[Event] = [replace(block, blocks=blocks_before)] if blocks_before else []
    blocks = max(_WAVES * sms // size, 1) * size
    return Sequence([*events, replace(launch, blocks=blocks, cluster=size)])


def together(trace: Trace) -> list[tuple[int, ...]]:
    """Returns the SMs of each cluster that was placed."""
    size = trace.sequence.launches[-1].cluster
    rows = trace[-1].smid.reshape(-1, size)
    return [tuple(sorted(set(row.tolist()))) for row in rows if (row >= 0).all()]


def maps_in_turns(lab: Lab, known: KnownValues, clusters: ListOf[tuple[int, ...]]) -> list[Values]:
    """Returns the maps that agree with the clusters and with the order of single blocks.

    Each block has an SM of its own. The only policy that places clusters is taken for granted.
    GPCs are then in the order of their turns.
    """
    rng = np.random.default_rng(8)
    sequences = [Sequence([whole_sm(known, lab.sms)])]
    for _ in range(_ORDERS):
        blocks = [int(rng.integers(1, lab.sms + 1)) for _ in range(2)]
        sequences.append(Sequence([whole_sm(known, count) for count in blocks]))
    runs = lab.runs(sequences)
    spec = with_values(draft(known), policy="hopper")
    turned: list[Values] = [
        {**values, "gpcs": in_turn(values["gpcs"], values["sms_per_tpc"], runs[0][0])}
        for values in maps(clusters, lab.sms)
    ]
    return [values for values in turned if explains(with_values(spec, **values), runs)]


def in_turn(
    gpcs: tuple[tuple[int, ...], ...], size: int, order: Trace
) -> tuple[tuple[int, ...], ...]:
    """Returns the GPCs in the order in which they took the blocks of a launch, beginning with that
    of TPC 0. ``order``: the SM of each block."""
    gpc_by_tpc = {tpc: gpc for gpc, row in enumerate(gpcs) for tpc in row}
    gpcs_in_order = list(
        dict.fromkeys(gpc_by_tpc.get(sm // size, -1) for sm in order[0].smid.tolist())
    )
    turns = [gpc for gpc in gpcs_in_order if gpc >= 0]
    if sorted(turns) != list(range(len(gpcs))):
        return gpcs
    first = turns.index(0) if turns else 0
    return tuple(gpcs[gpc] for gpc in turns[first:] + turns[:first])


def maps(clusters: ListOf[tuple[int, ...]], sms: int) -> list[Values]:
    """Returns the maps, the SMs of a TPC and the TPCs of each GPC, that agree with the SMs of
    clusters; the most likely map first.

    Those of 3 and more are never outside a GPC; those of 2 are in one, or on one TPC. A TPC that
    was with no other is in no GPC, or alone in one.
    """
    pairs = {cluster for cluster in clusters if len(cluster) == 2}
    larger = {cluster for cluster in clusters if len(cluster) > 2}
    return [
        {"sms_per_tpc": size, "gpcs": rows}
        for size in _SIZES_OF_TPCS
        if size <= sms
        for rows in _maps(larger | {p for p in pairs if p[0] // size != p[1] // size}, size, sms)
    ]


def _maps(clusters: Iterable[tuple[int, ...]], size: int, sms: int) -> list[_Rows]:
    """Returns all possible GPCs, as TPCs, for TPCs of ``size`` SMs; empty: a TPC would be in two
    GPCs."""
    rows = [tuple(sorted({sm // size for sm in gpc})) for gpc in joined(clusters)]
    inside = [tpc for row in rows for tpc in row]
    if len(inside) != len(set(inside)):
        return []
    lone = sorted(set(range(-(-sms // size))) - set(inside))
    if len(lone) > _MAX_LONE:
        alone: list[tuple[int, ...]] = [(), tuple(lone)]
    else:
        alone = [chosen for count in range(len(lone) + 1) for chosen in combinations(lone, count)]
    # The GPC of the first TPC comes first, which is a convention.
    return [tuple(sorted([*rows, *((tpc,) for tpc in chosen)])) for chosen in alone]


def read(clusters: ListOf[tuple[int, ...]], possible: ListOf[Values]) -> list[Finding]:
    """Returns findings from the SMs of clusters, and the maps that agree with them."""
    if not possible:
        because = "clusters were on SMs as on no device with TPCs of 1 to 4 SMs"
        return [assumed(_TPC, 1, because), assumed(_GPCS, (), because)]
    count = sum(len(cluster) > 1 for cluster in clusters)
    because = f"{count} clusters kept to these SMs"
    findings = []
    for path in (_TPC, _GPCS):
        values_left = list(dict.fromkeys(values[path.rpartition(".")[2]] for values in possible))
        findings.append(
            assumed(path, values_left[0], because, tuple(values_left[1:]))
            if len(values_left) > 1
            else determined(path, values_left[0], because)
        )
    return findings


def _as_assumed(findings: list[Finding]) -> list[Finding]:
    because = f"; {NO_RULE}: with this map, single blocks would be handed out in other turns"
    return [assumed(f.path, f.value, f.because + because, f.rivals) for f in findings]


def joined(groups: Iterable[Iterable[int]]) -> list[set[int]]:
    """Merges groups that share a member, directly or through others."""
    groups_joined: list[set[int]] = []
    for group in {frozenset(group) for group in groups}:
        apart = [joined_group for joined_group in groups_joined if joined_group.isdisjoint(group)]
        shared = [
            joined_group for joined_group in groups_joined if not joined_group.isdisjoint(group)
        ]
        groups_joined = [*apart, set(group).union(*shared)]
    return groups_joined


def _slots(full: Trace, known: KnownValues) -> Finding:
    """Returns the finding of how many blocks of clusters an SM holds, from clusters of 2 that fill
    the GPU. ``full``: their run."""
    blocks_per_sm = full[0].occupancy(full.device.sms)
    max_blocks = int(blocks_per_sm.max())
    if max_blocks < known["blocks_per_sm"] and max_blocks < known.notes["single"]:
        return determined(
            _SLOTS, max_blocks, f"SMs held {max_blocks} small blocks in clusters, more waited"
        )
    return assumed(
        _SLOTS, max(max_blocks, 32), f"SMs held {max_blocks} small blocks in clusters, as alone"
    )
