"""Measures a device: one probe after the other, then a campaign that scores what they found."""

from __future__ import annotations

import contextlib
import os
import time
from concurrent.futures import Executor

from tbsched.calibration import table
from tbsched.calibration.asking.evidence import observed
from tbsched.calibration.asking.journal import SYNC_EVERY, Journal
from tbsched.calibration.asking.lab import Inconclusive, Lab
from tbsched.calibration.campaign import Campaign, check_parts, elsewhere
from tbsched.calibration.doubt.last_look import LEFT_OUT
from tbsched.calibration.draft import documented, draft, guesses
from tbsched.calibration.finding import KnownValues
from tbsched.calibration.results import Calibration, Step, certified
from tbsched.calibration.scored import scored
from tbsched.campaigns.oracles import OracleLike, open_oracle
from tbsched.errors import shown
from tbsched.program import checks
from tbsched.progress import bar
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.oracle import Oracle

# Share of the time for probes; the campaign has the rest.
_FOR_PROBES = 0.7
_MAX_COUNT = 2**63 - 1


def calibrate(
    oracle: OracleLike = "gpu",
    seconds: float = 300.0,
    *,
    sequences: int = 1_000_000,
    seed: int = 0,
    name: str = "calibrated",
    evidence: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> Calibration:
    """Measures a GPU from launches and observations alone, and writes down how sure each value is.

    Probes find the sizes of an SM, the map of the SMs, the rules and the policy. Each reads what
    those before it found. A rule is found by elimination: all rules that the model knows predict
    sequences on which they differ, and those that are wrong are eliminated. A campaign then
    compares the whole with the oracle.

    Args:
        oracle: what is measured, as for :func:`tbsched.fuzz`: ``"gpu"``, or a device whose model
            plays an unknown GPU. Calibration uses only a model's observations, its title and its
            number of SMs.
        seconds: time limit. Values of probes that do not run in time are not determined.
        sequences: how many the campaign compares at most.
        seed: of the campaign.
        name: of the device.
        evidence: a ``.jsonl`` trace file. What the probes observe is appended to it at once, and
            what the campaign counted every few seconds. What it holds already is not asked again:
            so a calibration that was killed goes on.
        executor: who runs the campaign, as for :func:`tbsched.fuzz`. The probes ask ``oracle``
            here. An open ``Gpu`` is ``"gpu"`` for the executor: the first GPU that a worker sees.
        progress: shows a bar on standard error.

    Returns:
        A :class:`~tbsched.calibration.Calibration`: the device, what was found out about each
        value, and a certificate.

    Raises:
        TypeError, ValueError: nothing that can observe, an oracle that places no blocks at all,
            evidence of another GPU, or a number that is outside its range.
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.

    Example:
        >>> calibration = tb.calibrate("xavier", seconds=60, sequences=100, progress=False)
        >>> calibration.spec.warps_per_sm, calibration.spec.policy
        (64, 'ampere')
        >>> calibration.save("mine.toml")
        >>> tb.device("mine.toml").sms
        8
    """
    seconds = checks.seconds("calibrate", "seconds", seconds)
    sequences = checks.integer("calibrate", "sequences", sequences, 0, _MAX_COUNT)
    seed = checks.integer("calibrate", "seed", seed, 0, _MAX_COUNT)
    if not isinstance(executor, Executor | None):
        raise TypeError(
            f"calibrate.executor: a concurrent.futures.Executor is needed, got {shown(executor)}"
        )
    start = time.monotonic()
    with contextlib.ExitStack() as files, contextlib.ExitStack() as gpu:
        opened = gpu.enter_context(open_oracle(oracle))
        file = None
        if evidence is not None:
            file = files.enter_context(TraceFile(evidence, sync_every=SYNC_EVERY))
        journal = Journal(file)
        check_parts(journal)
        known, steps, lab = _probed(opened, seconds, progress, journal)
        for finding in documented(known) + guesses(known):
            known.add(finding)
        observations = observed(lab, draft(known, name))
        repeating_oracle: OracleLike = opened
        if executor is not None:
            repeating_oracle = oracle
            gpu.close()  # a worker may need the same one
        campaign_oracle = repeating_oracle if executor is None else elsewhere(oracle)
        remaining_seconds = seconds - (time.monotonic() - start)
        campaign = Campaign(campaign_oracle, remaining_seconds, sequences, seed, executor, progress)
        score = scored(known, observations, name, campaign, journal, repeating_oracle)
    states = tuple(sorted(known.notes.get("states", ()), key=repr))
    certificate = certified(score, lab.eliminated + score.eliminated, states, LEFT_OUT)
    took = time.monotonic() - start
    return Calibration(
        score.spec, known.findings, score.others, certificate, score.report, tuple(steps), took
    )


def _probed(
    oracle: Oracle, seconds: float, progress: bool, journal: Journal
) -> tuple[KnownValues, list[Step], Lab]:
    """Runs all probes; returns what they found, their steps and the lab."""
    known, steps = KnownValues(), []
    with bar("measuring", max(int(1000 * seconds), 1)) as advance:
        lab = Lab(
            oracle,
            _FOR_PROBES * seconds,
            (lambda spent: advance(int(1000 * spent))) if progress else (lambda _: None),
            journal,
        )
        for probe in table.PROBES:
            before = lab.sequences, lab.launches, lab.spent
            failure = None
            try:
                table.run(probe, lab, known)
            except (Inconclusive, ValueError) as error:
                failure = str(error)
            took = lab.sequences - before[0], lab.launches - before[1], lab.spent - before[2]
            steps.append(Step(probe.name, *took, failure))
            if "sms" not in known:
                raise ValueError(f"calibrate: oracle: {failure}")
    return known, steps, lab
