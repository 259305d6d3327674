"""What a calibration found, and how sure it is of the whole."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tbsched.calibration.doubt.witnesses import Witness
from tbsched.calibration.finding import ASSUMED, TOLD, Finding
from tbsched.calibration.scored import Score
from tbsched.campaigns.results import Report
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.hardware.written import save_device
from tbsched.shown import Shown

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Step:
    """Cost of one probe.

    Attributes:
        probe: its name.
        sequences: how many it ran.
        launches: how many these have.
        seconds: how long it took.
        failure: why it found nothing; None: it found something.
    """

    probe: str
    sequences: int
    launches: int
    seconds: float
    failure: str | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """How sure a calibrated device is as a whole: a campaign compared it with the oracle.

    Attributes:
        sequences: how many were compared, block by block.
        launches: how many these have.
        blocks: how many these have.
        disagreements: how many of the sequences the device predicted wrong, more than once.
        unstable: sequences that are not counted: the oracle did not agree with itself.
        confidence: of ``miss_rate``.
        miss_rate: at most this share of such sequences is predicted wrong, with that confidence:
            the upper end of the interval of Clopper and Pearson for no disagreement. 1.0 if there
            was one, or if nothing was compared.
        struck: number of other devices that predicted something wrong and were eliminated: each a
            combination of rules, sizes and a policy.
        decided: of each mechanism that can be left out of the device, how many of the sequences
            would then be placed otherwise, counted up to five. Where it is 0, the campaign could
            not tell a device without the mechanism.
        states: latent states that occurred.
        possible_states: how many the policy has.
        left_out: what the campaign did not draw.
        refusal: what the oracle said when it refused a sequence that the device allows; None: it
            refused none.
        boards_differ: another GPU that ran the campaign disagrees, and the one that was probed does
            not: boards of one kind have other maps.

    Example:
        >>> calibration = tb.calibrate("xavier", seconds=60, sequences=200, progress=False)
        >>> calibration.certificate.disagreements, calibration.certificate.miss_rate < 0.02
        (0, True)
    """

    sequences: int
    launches: int
    blocks: int
    disagreements: int
    unstable: int
    confidence: float
    miss_rate: float
    struck: int
    decided: tuple[tuple[str, int], ...]
    states: tuple[InitialState, ...]
    possible_states: int
    left_out: tuple[str, ...]
    refusal: str | None = None
    boards_differ: bool = False

    @property
    def holds(self) -> bool:
        """Whether something was compared and nothing disagreed."""
        return self.sequences > 0 and self.disagreements == 0 and not self.boards_differ


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Calibration(Shown):
    """A device that was measured; ``print`` shows each value and how sure it is.

    Attributes:
        spec: the device, for :func:`tbsched.predict`.
        report: a :class:`Finding` for each value that a device file names or a probe asked for.
        witnesses: for values that are not told, another device that agrees with ``spec`` on every
            sequence that the probes asked: a :class:`Witness` each, where one is known.
        certificate: how sure the whole is.
        campaign: the campaign that the certificate is from; None if no time was left for one, or
            if the oracle refused one of its sequences.
        steps: what each probe took.
        seconds: how long it all took.

    Example:
        >>> calibration = tb.calibrate("xavier", seconds=60, sequences=50, progress=False)
        >>> calibration.spec.sms, calibration.certificate.disagreements
        (8, 0)
        >>> calibration.finding("limits.blocks_per_sm").kind
        'told'
    """

    spec: DeviceSpec
    report: tuple[Finding, ...]
    witnesses: tuple[Witness, ...]
    certificate: Certificate
    campaign: Report | None
    steps: tuple[Step, ...]
    seconds: float

    def finding(self, path: str) -> Finding:
        """Returns what was found out about one value.

        Args:
            path: its key in a device file, such as ``limits.blocks_per_sm``.

        Raises:
            KeyError: nothing was asked about it, and every device file may leave it out.
        """
        for finding in self.report:
            if finding.path == path:
                return finding
        raise KeyError(path)

    def witness(self, path: str) -> Witness:
        """Returns another device with another value that agrees on every sequence tried.

        Args:
            path: the value's key in a device file, such as ``topology.gpcs``.

        Raises:
            KeyError: the value is told, or no such device is known.
        """
        for witness in self.witnesses:
            if witness.path == path:
                return witness
        raise KeyError(path)

    @property
    def told(self) -> tuple[Finding, ...]:
        """Values that the observations leave no other one for."""
        return tuple(finding for finding in self.report if finding.kind == TOLD)

    @property
    def assumed(self) -> tuple[Finding, ...]:
        """Values that may be others."""
        return tuple(finding for finding in self.report if finding.kind == ASSUMED)

    @property
    def not_asked(self) -> tuple[str, ...]:
        """Returns the values that no probe asked for. They have the defaults of device files."""
        paths_asked = {finding.path for finding in self.report} | {
            "device.title",
            "device.compute_capability",
        }
        return tuple(
            field.path for field in FIELDS if field.section and field.path not in paths_asked
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the device file; every value has its provenance.

        Raises:
            OSError: it cannot be written.
        """
        save_device(path, self.spec, heading="Written by `tbsched calibrate`.")


def certified(
    score: Score, struck: int, states: tuple[InitialState, ...], features_left_out: tuple[str, ...]
) -> Certificate:
    """Returns the certificate of a campaign, or of the refusal that ended it."""
    campaign, possible = score.report, len(score.spec.initial_states())
    if campaign is None:
        return Certificate(
            0,
            0,
            0,
            0,
            0,
            CONFIDENCE,
            1.0,
            struck,
            (),
            states,
            possible,
            features_left_out,
            score.refusal,
        )
    # A disagreement that did not occur again is counted as unstable.
    wrong = campaign.disagreements if score.is_wrong else 0
    unstable = max(len(campaign.unstable), campaign.disagreements - wrong)
    compared = max(campaign.examples - unstable, 0)
    certain = compared > 0 and not wrong and not score.boards_differ
    return Certificate(
        compared,
        campaign.launches,
        campaign.blocks,
        wrong,
        unstable,
        CONFIDENCE,
        1 - (1 - CONFIDENCE) ** (1 / compared) if certain else 1.0,
        struck,
        tuple(campaign.coverage.decided.items()),
        states,
        possible,
        features_left_out,
        boards_differ=score.boards_differ,
    )
