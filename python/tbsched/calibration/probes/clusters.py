"""How clusters are placed, by elimination."""

from __future__ import annotations

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, by_elimination
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import NO_RULE, Finding, KnownValues, assumed
from tbsched.program.sequence import Sequence

CHOICES: Choices = {
    "clusters_seek_idle_sms": (True, False),
    "clusters_take_whole_tpcs": (True, False),
    "clusters_use_singletons": (True, False),
    "clusters_balance": (True, False),
    "clusters_use_whole_partition": (True, False),
    "blocks_turn_singletons": (True, False),
}


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Eliminates placement rules that contradict where clusters of all sizes go among single
    blocks, and returns findings from the rules that remain."""
    spec = draft(known)
    if spec.max_cluster < 2:
        return []
    if known.unknown(["gpcs"]):
        return [_not_placed(name, values[0]) for name, values in CHOICES.items()]
    sizes = known.notes["clusters"]
    half = max(spec.shared_memory_configurations[-1] // 2, 0)
    warp_counts = [w for w in (1, 2, 4, 5, 8, 16) if 32 * w <= spec.threads_per_block]
    shared_sizes = {
        0,
        min(half, spec.shared_memory_per_block),
        min(8192, spec.shared_memory_per_block),
    }
    # Carveouts vary the shared memory of SMs, and so which SM has most room.
    carveouts = (100, 100, 0) if len(spec.shared_memory_configurations) > 1 else (100,)
    launches = [small(w, 32) for w in warp_counts] * len(sizes) + [
        small(warps, 32, shared, size, size, carveout)
        for size in sizes
        for warps in warp_counts
        for shared in sorted(shared_sizes)
        for carveout in carveouts
    ]

    def drawn(rng: np.random.Generator) -> Sequence:
        return whole_gpu.draw(rng, launches, lab.sms)

    spec = with_values(spec, policy="hopper")
    findings = by_elimination(
        lab, known, spec, CHOICES, drawn, whole_gpu.VIEW, seed=4, every_block=True
    )
    if any(NO_RULE in finding.because for finding in findings):
        # The reason may be a wrong map.
        because = "clusters are not placed as on any device with this map"
        findings += [
            assumed("topology.gpcs", spec.gpcs, because),
            assumed("topology.sms_per_tpc", spec.sms_per_tpc, because),
        ]
    return findings


def _not_placed(name: str, value: bool) -> Finding:
    return assumed(f"mechanisms.{name}", value, "which TPC is in which GPC is not known")
