"""Table of probes, in the order in which they run: each reads the findings of those before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tbsched.calibration.asking.lab import Inconclusive, Lab
from tbsched.calibration.doubt import last_look, states
from tbsched.calibration.finding import ASSUMED, NO_RULE, Finding, KnownValues
from tbsched.calibration.probes import (
    clusters,
    configurations,
    layouts,
    limits,
    local_memory,
    policy,
    preference,
    shared_memory,
    sms,
    topology,
    waiting,
    warps,
)
from tbsched.calibration.probes.streams import calls, grids, latencies, priorities, queues


class Probe(NamedTuple):
    """A row of the table of probes.

    Attributes:
        name: name in reports.
        ask: runs the probe's sequences and returns its findings.
        needs: fields that must have been found before.
        rests_on: premises: fields that its rules take for granted. If one is open and its possible
            values are unknown, the probe's findings are only assumed.
    """

    name: str
    ask: Callable[[Lab, KnownValues], list[Finding]]
    needs: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()


_SM = ("processing_blocks", "warps_per_sm", "registers_per_sm", "register_unit", "blocks_per_sm")
_TURNS = ("strict_round_robin", "warp_skip", "registers")
_PLACES = ("sm_preference", *_SM, "shared_memory_reserve", *_TURNS)
_MEMORY = ("shared_memory_unit", "shared_memory_reserve", "blocks_per_sm")


PROBES = (
    Probe("SMs", sms.ask),
    Probe("limits of a block", limits.ask, ("sms",)),
    Probe("warps and registers", warps.ask, ("threads_per_block",)),
    Probe("shared memory and slots", shared_memory.ask, ("warps_per_sm",)),
    Probe("turns of warps", layouts.ask_turns, ("shared_memory_unit",), _SM),
    Probe("gaps in shared memory", layouts.ask_gaps, ("shared_memory_unit",), _MEMORY),
    Probe("order of SMs", preference.ask, ("shared_memory_unit",)),
    Probe("TPCs and GPCs", topology.ask, ("sm_preference", "blocks_per_sm")),
    Probe("policy", policy.ask, ("sms_per_tpc",), (*_PLACES, "gpcs")),
    Probe("configurations", configurations.ask_sizes, ("policy",), _MEMORY),
    Probe(
        "rules of configurations",
        configurations.ask_rules,
        ("policy",),
        ("shared_memory_configurations", "policy"),
    ),
    Probe("local memory", local_memory.ask, ("sms",)),
    Probe("clusters", clusters.ask, ("policy",), ("gpcs", "sms_per_tpc", "policy")),
    Probe("waiting launches", waiting.ask, ("policy",), ("policy",)),
    Probe("priorities", priorities.ask, ("launch_order",), ("policy",)),
    Probe("resident grids", grids.ask, ("sms",)),
    Probe("hardware queues", queues.ask, ("resident_grids",)),
    Probe("latencies", latencies.ask, ("policy",)),
    Probe("calls of the host", calls.ask, ("completion_latency_ns",)),
    Probe("latent states", states.ask, ("policy", "sms_per_tpc")),
    Probe("what is left", last_look.ask, ("policy",)),
)


def run(probe: Probe, lab: Lab, known: KnownValues) -> list[Finding]:
    """Runs a probe, and adds its findings to ``known``.

    Raises:
        Inconclusive: a field that it needs is not known, or its runs determine nothing.
    """
    missing = [name for name in probe.needs if name not in known]
    if missing:
        raise Inconclusive(f"{', '.join(missing)} is not known")
    known.premises = probe.rests_on
    open_ones = known.unknown(probe.rests_on)
    findings = probe.ask(lab, known)
    if any(NO_RULE in finding.because for finding in findings):
        # Noise may have eliminated the right rule: repeat the probe with more runs that must agree.
        lab.disagreed += 1
        findings = probe.ask(lab, known)
    findings = [replace(finding, probe=probe.name) for finding in findings]
    if open_ones:
        because = f"; it rests on {', '.join(open_ones)}, not told"
        findings = [replace(f, kind=ASSUMED, because=f.because + because) for f in findings]
        known.forget(finding.name for finding in findings)
    for finding in findings:
        known.add(finding)
    return findings
