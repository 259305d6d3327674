"""Compares what was found with the oracle, and mends what is assumed as long as that is wrong."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from itertools import count

from tbsched.calibration.asking.evidence import Evidence
from tbsched.calibration.asking.journal import Journal
from tbsched.calibration.campaign import Campaign, disagreeing
from tbsched.calibration.doubt.struck import mended, strike_out
from tbsched.calibration.doubt.witnesses import Witness, witnesses
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Found
from tbsched.campaigns.oracles import OracleLike
from tbsched.campaigns.results import Report
from tbsched.hardware.spec import DeviceSpec

_MOST_MENDED = 16
_LOOKS = 16  # by whatever processes the executor takes: nobody says how many GPUs there are


@dataclass(frozen=True, slots=True)
class Score:
    """How a device did.

    Attributes:
        spec: the device.
        others: of values that are not told, devices that explain the same.
        report: the last campaign; None: there was no time for one.
        refusal: what the oracle said when it refused a sequence that the device allows.
        is_wrong: what the last campaign found contradicts the device, and shows again.
        boards_differ: it shows again on some GPU of the executor, and not on the one that was
            probed.
        struck: how many devices earlier campaigns struck out.
    """

    spec: DeviceSpec
    others: tuple[Witness, ...]
    report: Report | None
    refusal: str | None
    is_wrong: bool
    boards_differ: bool
    struck: int


def scored(
    found: Found,
    seen: Evidence,
    name: str,
    campaign: Campaign,
    journal: Journal,
    again: OracleLike,
) -> Score:
    """Runs a campaign; if it shows that something assumed is wrong, mends that, and runs another.

    Args:
        found: what the probes found; what is told and assumed may change.
        seen: all that was observed.
        name: of the device.
        campaign: what compares, and for how long.
        journal: what earlier calibrations counted.
        again: what runs a disagreement once more.
    """
    end = time.monotonic() + campaign.seconds
    mended(found, seen)
    for struck in count():
        strike_out(draft(found, name), found, seen)
        spec = draft(found, name)
        others = witnesses(spec, found, seen)
        report, refusal, wrong = None, None, []
        left = end - time.monotonic()
        try:
            # What a device was mended with says nothing about it: others are drawn.
            fresh = replace(campaign, seconds=left, seed=campaign.seed + struck)
            report = fresh.run(spec, journal)
        except ValueError as error:
            # The oracle refuses what the device allows: some value that was assumed is wrong.
            refusal = str(error).partition("\n")[0]
        else:
            wrong = [] if report is None else disagreeing(again, spec, report)
        is_over = time.monotonic() > end or (report is not None and report.ended == "interrupted")
        if not wrong or is_over or struck == _MOST_MENDED:
            break
        seen.add(wrong)
        if not mended(found, seen):
            break
    if wrong or refusal is not None or not seen.explained_by(spec):
        found.doubt()
        spec = draft(found, name)
    differ = not wrong and report is not None and _boards_differ(campaign, spec, report)
    return Score(spec, others, report, refusal, bool(wrong), differ, struck)


def _boards_differ(campaign: Campaign, spec: DeviceSpec, report: Report) -> bool:
    """Whether a counterexample that the probed GPU does not show is shown by another one."""
    if campaign.executor is None or not report.counterexamples:
        return False
    asked = [
        campaign.executor.submit(disagreeing, campaign.oracle, spec, report) for _ in range(_LOOKS)
    ]
    shown = False
    for answer in asked:
        # Whoever cannot answer shows nothing.
        with contextlib.suppress(Exception, CancelledError):
            shown = shown or bool(answer.result())
    return shown
