"""What campaigns found, in words."""

from __future__ import annotations

from tbsched.calibration.doubt.witnesses import Witness
from tbsched.calibration.results import Calibration
from tbsched.campaigns.results import Counterexample, Report
from tbsched.campaigns.space.coverage import Coverage
from tbsched.program.sequence import Sequence
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted

_VALUE = 60  # characters


def counterexample_short(found: Counterexample) -> str:
    """Its name, and the least that is known of its sequence."""
    how = "shrunk" if found.shrunk else "not shrunk"
    return f"{found.id}, {counted(len(found.sequence), 'event')}, {how}"


def counterexample_text(found: Counterexample) -> str:
    """Where prediction and observation differ, and the test to paste."""
    return f"{found.diff}\n\n{found.code}"


def report_short(report: Report) -> str:
    """How much was compared, and how much differed."""
    return (
        f"{report.predictor}/{report.policy} by {report.level}, "
        f"{counted(report.examples, 'sequence')}, {report.disagreements:,} disagree, "
        f"{counted(len(report.counterexamples), 'counterexample')}"
    )


def report_text(report: Report) -> str:
    """The numbers of a campaign, and its counterexamples."""
    parts = ["\n".join(report_lines(report))]
    headings = counterexample_headings(report)
    for heading, example in zip(headings, report.counterexamples, strict=True):
        parts.append(f"\n{heading}: {example}")
    return "\n".join(parts)


def counterexample_headings(report: Report) -> list[str]:
    """What each counterexample is called."""
    numbers = {found.id: number for number, found in enumerate(report.counterexamples, 1)}
    headings = []
    for number, example in enumerate(report.counterexamples, 1):
        heading = f"counterexample {number}" + ("" if example.shrunk else " (not shrunk)")
        headings.append(heading + (f" (like {numbers[example.like]})" if example.like else ""))
    return headings


def report_lines(report: Report) -> list[str]:
    """The numbers of a campaign; those that say more of the one before are moved in."""
    kinds = sum(found.like is None for found in report.counterexamples)
    rate = report.examples / report.seconds if report.seconds else 0.0
    lines = [
        f"{report.predictor}/{report.policy} by {report.level}: {report.examples:,} sequences in "
        f"{report.seconds:.1f} s ({rate:,.0f}/s), seed {report.seed}, ended by {report.ended}",
        f"  {report.launches:,} launches, {report.blocks:,} blocks: occupancy agrees in "
        f"{_percent(report.occupancy, report.launches)} of launches"
        # At level occupancy only one latent state was tried, which says little of each block.
        + (
            f", every block in {_percent(report.exact, report.launches)}"
            if report.level == "exact"
            else ""
        ),
        f"  {counted(report.disagreements, 'sequence disagrees', 'sequences disagree')}, "
        f"{counted(len(report.counterexamples), 'distinct counterexample')}"
        + (f" of {kinds} kinds" if kinds < len(report.counterexamples) else "")
        + (f" ({report.shrinking:,} sequences tried to shrink them)" if report.shrinking else ""),
    ]
    lines += _coverage(report.coverage)
    if report.replayed:
        still = sum(example.replayed for example in report.counterexamples)
        lines.append(f"  {report.replayed} of the corpus tried again, {still} still disagree")
    if report.unpredicted:
        lines.append(f"  {report.unpredicted:,} recorded only: the model cannot predict them")
    for lost in report.lost:
        lines.append(
            f"  lost: {lost.count:,} sequences from number {lost.begin:,} on: {lost.reason}"
        )
    if report.unstable:
        lines.append(f"  {len(report.unstable)} unstable, the first: {report.unstable[0].reason}")
    return lines


def _coverage(coverage: Coverage) -> list[str]:
    lines = []
    for words, launches in (
        ("launches with", coverage.ways),
        ("launches that did not fit, by what refused them", coverage.refused),
    ):
        if launches:
            named = ", ".join(f"{name} {times:,}" for name, times in launches.most_common())
            lines.append(f"  {words}: {named}")
    for words, idle in (("would have shown", False), ("would not have shown", True)):
        names = [name for name, times in coverage.decided.items() if (times == 0) == idle]
        if names:
            lines.append(f"  {words}: {', '.join(names)}")
    return lines


def _percent(part: int, whole: int) -> str:
    # A miss must show: what rounds to 100 without being so is cut, not rounded.
    return "-" if not whole else f"{int(10_000 * part / whole) / 100:.2f} %"


def calibration_short(calibration: Calibration) -> str:
    """How much is told, and whether the certificate holds."""
    certificate = calibration.certificate
    words = "certified" if certificate.holds else "no certificate"
    return (
        f"{calibration.spec.title}: {len(calibration.told)} values told, "
        f"{len(calibration.assumed)} assumed, {words}"
    )


def calibration_text(calibration: Calibration) -> str:
    """The certificate, and each value with how sure it is."""
    rows = calibration_rows(calibration)
    table = render(table_of(("field", "value", "how sure", "because"), rows, left=(0, 3)))
    telling = [
        f"\nwould tell {', '.join(paths)}:\n{sequence!r}"
        for sequence, paths in telling_of(calibration).items()
    ]
    lines = [calibration_short(calibration), *calibration_lines(calibration), "", table]
    return "\n".join(lines + telling)


def telling_of(calibration: Calibration) -> dict[Sequence, list[str]]:
    """Sequences that would tell values, and which."""
    found: dict[Sequence, list[str]] = {}
    for witness in calibration.witnesses:
        if witness.telling is not None:
            found.setdefault(witness.telling, []).append(witness.path)
    return found


def calibration_rows(calibration: Calibration) -> list[tuple[str, str, str, str]]:
    """Of each value: field, value, how sure, and why."""
    witnesses = {witness.path: witness for witness in calibration.witnesses}
    rows = []
    for finding in calibration.report:
        because = finding.because
        # A witness has one of them.
        if len(finding.rivals) > (finding.path in witnesses):
            because += f"; not told apart from {', '.join(map(_cut, finding.rivals))}"
        if finding.path in witnesses:
            because += f"; {_witness_words(witnesses[finding.path])}"
        rows.append((finding.path, _cut(finding.value), finding.kind, because))
    return rows


def _witness_words(witness: Witness) -> str:
    """The other device that explains everything as well, and what would tell the two apart."""
    changes = ", ".join(f"{path} = {_cut(value)}" for path, value in witness.changes)
    words = f"with {changes} all of {witness.sequences:,} sequences would be the same"
    if witness.telling is None:
        return f"{words}; nothing is known that would tell"
    kinds = _kinds(witness.telling)
    return f"{words}; a sequence below would tell" + (f", with {kinds}" if kinds else "")


def _kinds(sequence: Sequence) -> str:
    """What in a sequence the probes do not draw."""
    launches = sequence.launches
    kinds = {
        "priorities": any(launch.priority for launch in launches),
        "cooperative launches": any(launch.cooperative for launch in launches),
        "partitions": any(launch.partition is not None for launch in launches),
    }
    return ", ".join(name for name, there in kinds.items() if there)


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}…"


def calibration_lines(calibration: Calibration) -> list[str]:
    """The certificate, and what the probes took."""
    certificate = calibration.certificate
    asked = sum(step.sequences for step in calibration.steps)
    lines = [
        f"  {counted(asked, 'sequence')} for probes, "
        f"{counted(certificate.sequences, 'sequence')} with "
        f"{counted(certificate.launches, 'launch', 'launches')} in the campaign, "
        f"{calibration.seconds:.1f} s",
    ]
    if certificate.holds:
        lines.append(
            f"  none disagreed: with {100 * certificate.confidence:.0f} % confidence at most "
            f"{100 * certificate.miss_rate:.2g} % of such sequences are predicted wrong"
        )
    elif certificate.disagreements:
        lines.append(f"  {counted(certificate.disagreements, 'sequence disagrees', 'disagree')}")
    elif certificate.refusal is not None:
        lines.append(
            f"  the oracle refused a sequence that the device allows, so some value is wrong: "
            f"{certificate.refusal}"
        )
    elif certificate.boards_differ:
        lines.append(
            "  another GPU that ran the campaign disagrees, and the one that was probed does not: "
            "calibrate each board for itself"
        )
    else:
        lines.append("  nothing was compared")
    if certificate.unstable:
        several = counted(certificate.unstable, "sequence says", "sequences say")
        lines.append(f"  {several} nothing, as the oracle did not agree with itself")
    several = counted(certificate.struck, "other device was", "other devices were")
    lines.append(f"  {several} struck out, each a combination of rules, sizes and a policy")
    if calibration.campaign is not None:
        lines += _coverage(calibration.campaign.coverage)
    lines.append(
        f"  latent states seen: {len(certificate.states)} of {certificate.possible_states}; "
        f"not compared: {', '.join(certificate.left_out)}"
    )
    several = counted(len(calibration.not_asked), "value has its default", "values have defaults")
    lines.append(f"  {several}, as no probe asks for them")
    lines += [
        f"  {step.probe}: nothing told, {step.failure}"
        for step in calibration.steps
        if step.failure
    ]
    if calibration.campaign is not None:
        if calibration.campaign.ended == "interrupted":
            lines.append("  the campaign was interrupted")
        for example in calibration.campaign.counterexamples:
            lines.append(f"  the smallest disagreement: {example.sequence!r}")
    return lines
