"""Scores the findings by campaigns, and repairs assumptions that these contradict."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from itertools import count

from tbsched.calibration.asking.evidence import Evidence
from tbsched.calibration.asking.journal import Journal
from tbsched.calibration.campaign import Campaign, disagreeing
from tbsched.calibration.doubt.contradictions import eliminate_contradicted, repair
from tbsched.calibration.doubt.witnesses import Witness, witnesses
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import KnownValues
from tbsched.campaigns.oracles import OracleLike
from tbsched.campaigns.results import Report
from tbsched.hardware.spec import DeviceSpec

_MAX_REPAIRS = 16
_TRIES = 16  # repetitions, as the number of the executor's GPUs is unknown


@dataclass(frozen=True, slots=True)
class Score:
    """Result of the campaigns that score a device.

    Attributes:
        spec: the device.
        others: devices with other values of undetermined fields that explain all observations.
        report: report of the last campaign; None: there was no time for one.
        refusal: what the oracle said when it refused a sequence that the device allows.
        is_wrong: whether a counterexample of the last campaign was reproduced.
        boards_differ: whether it was reproduced on a GPU of the executor, but not on the probed
            one.
        eliminated: number of devices that earlier campaigns eliminated.
    """

    spec: DeviceSpec
    others: tuple[Witness, ...]
    report: Report | None
    refusal: str | None
    is_wrong: bool
    boards_differ: bool
    eliminated: int


def scored(
    known: KnownValues,
    evidence: Evidence,
    name: str,
    campaign: Campaign,
    journal: Journal,
    oracle: OracleLike,
) -> Score:
    """Returns the score of the calibrated device: runs campaigns, repairs assumptions that one
    contradicts, and runs another until none does.

    Args:
        known: the findings of the probes, which may be changed.
        evidence: all observations; counterexamples are added.
        name: name of the device.
        campaign: settings of the campaigns; its time is for all of them together.
        journal: stores results, and has those of earlier calibrations.
        oracle: that repeats disagreements.
    """
    end = time.monotonic() + campaign.seconds
    repair(known, evidence)
    for eliminated in count():
        eliminate_contradicted(draft(known, name), known, evidence)
        spec = draft(known, name)
        witnesses_found = witnesses(spec, known, evidence)
        report, refusal, wrong = None, None, []
        remaining_seconds = end - time.monotonic()
        try:
            # New draws: those that led to the repair are no test of the repaired device.
            fresh = replace(campaign, seconds=remaining_seconds, seed=campaign.seed + eliminated)
            report = fresh.run(spec, journal)
        except ValueError as error:
            # The oracle refuses what the device allows: some value that was assumed is wrong.
            refusal = str(error).partition("\n")[0]
        else:
            wrong = [] if report is None else disagreeing(oracle, spec, report)
        is_over = time.monotonic() > end or (report is not None and report.ended == "interrupted")
        if not wrong or is_over or eliminated == _MAX_REPAIRS:
            break
        evidence.add(wrong)
        if not repair(known, evidence):
            break
    if wrong or refusal is not None or not evidence.explained_by(spec):
        known.demote_eliminated()
        spec = draft(known, name)
    differ = not wrong and report is not None and _boards_differ(campaign, spec, report)
    return Score(spec, witnesses_found, report, refusal, bool(wrong), differ, eliminated)


def _boards_differ(campaign: Campaign, spec: DeviceSpec, report: Report) -> bool:
    """Returns whether another GPU reproduces a counterexample that the probed one does not."""
    if campaign.executor is None or not report.counterexamples:
        return False
    answers = [
        campaign.executor.submit(disagreeing, campaign.oracle, spec, report) for _ in range(_TRIES)
    ]
    shown = False
    for answer in answers:
        # A worker that fails reproduces nothing.
        with contextlib.suppress(Exception, CancelledError):
            shown = shown or bool(answer.result())
    return shown
