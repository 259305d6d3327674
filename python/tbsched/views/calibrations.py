"""What was measured of a GPU, and how sure it is."""

from __future__ import annotations

from typing import Any

from tbsched.calibration.doubt.witnesses import Witness
from tbsched.calibration.finding import ASSUMED, DOCUMENTED, TOLD
from tbsched.calibration.results import Calibration
from tbsched.counting import counted
from tbsched.program.sequence import Sequence
from tbsched.views.campaigns import (
    coverage_lines,
    report_data,
)
from tbsched.views.cards import (
    card,
    code_html,
    folded_html,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.views.plain import columns_of, fields, plain
from tbsched.views.tables import Lines, table_of

_VALUE = 60  # characters
_HEADINGS = {
    TOLD: "Told: the observations leave no other value",
    DOCUMENTED: "Documented: not told, and NVIDIA documents it",
    ASSUMED: "Assumed: another value may be right",
}


def calibration_short(calibration: Calibration) -> str:
    """Returns how much is told, and whether the certificate holds."""
    certificate = calibration.certificate
    words = "certified" if certificate.holds else "no certificate"
    return (
        f"{calibration.spec.title}: {counted(len(calibration.told), 'value')} told, "
        f"{len(calibration.assumed)} assumed, {words}"
    )


def calibration_text(calibration: Calibration) -> Lines:
    """Returns the certificate, and each value with how sure it is."""
    rows = calibration_rows(calibration)
    table = table_of(("field", "value", "how sure", "because"), rows, left=(0, 3))
    telling = [
        f"\nwould tell {', '.join(paths)}:\n{sequence!r}"
        for sequence, paths in telling_of(calibration).items()
    ]
    return [calibration_short(calibration), *calibration_lines(calibration), "", table, *telling]


def telling_of(calibration: Calibration) -> dict[Sequence, list[str]]:
    """Returns the sequences that would determine values which are not determined, each with the
    paths of these values."""
    telling: dict[Sequence, list[str]] = {}
    for witness in calibration.witnesses:
        if witness.telling is not None:
            telling.setdefault(witness.telling, []).append(witness.path)
    return telling


def calibration_rows(calibration: Calibration) -> list[tuple[str, str, str, str]]:
    """Returns a row for each value: field, value, how sure, and why."""
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
    """Returns words for the other device that explains everything, and what would tell."""
    changes = ", ".join(f"{path} = {_cut(value)}" for path, value in witness.changes)
    words = f"with {changes} all of {witness.sequences:,} sequences would be the same"
    if witness.telling is None:
        return f"{words}; nothing is known that would tell"
    kinds = _kinds(witness.telling)
    return f"{words}; a sequence below would tell" + (f", with {kinds}" if kinds else "")


def _kinds(sequence: Sequence) -> str:
    """Returns what in a sequence the probes do not draw."""
    launches = sequence.launches
    kinds = {
        "priorities": any(launch.priority for launch in launches),
        "cooperative launches": any(launch.cooperative for launch in launches),
        "partitions": any(launch.partition is not None for launch in launches),
    }
    return ", ".join(name for name, is_present in kinds.items() if is_present)


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}…"


def calibration_lines(calibration: Calibration) -> list[str]:
    """Returns the certificate, and what the probes took."""
    certificate = calibration.certificate
    sequences_run = sum(step.sequences for step in calibration.steps)
    lines = [
        f"  {counted(sequences_run, 'sequence')} for probes, "
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
        count_words = counted(certificate.unstable, "sequence says", "sequences say")
        lines.append(f"  {count_words} nothing, as the oracle did not agree with itself")
    count_words = counted(certificate.struck, "other device was", "other devices were")
    lines.append(f"  {count_words} struck out, each a combination of rules, sizes and a policy")
    if calibration.campaign is not None:
        lines += coverage_lines(calibration.campaign.coverage)
    lines.append(
        f"  latent states seen: {len(certificate.states)} of {certificate.possible_states}; "
        f"not compared: {', '.join(certificate.left_out)}"
    )
    count_words = counted(
        len(calibration.not_asked), "value has its default", "values have defaults"
    )
    lines.append(f"  {count_words}, as no probe asks for them")
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


def calibration_html(calibration: Calibration) -> str:
    """Returns HTML: the certificate, each value with how sure it is, and what the probes took."""
    titles = ("field", "value", "how sure", "because")
    certificate = calibration.certificate
    documented = sum(finding.kind == DOCUMENTED for finding in calibration.report)
    rows = calibration_rows(calibration)
    parts = [
        table_html(table_of(titles, rows_of_kind, left=(0, 3)), heading=heading)
        for kind, heading in _HEADINGS.items()
        if (rows_of_kind := [row for row in rows if row[2] == kind])
    ]
    steps = [
        (step.probe, f"{step.sequences:,}", f"{step.launches:,}", f"{step.seconds:.1f}",
         step.failure or "")
        for step in calibration.steps
    ]  # fmt: skip
    steps_table = table_of(
        ("probe", "sequences", "launches", "seconds", "told nothing, because"), steps
    )
    return card(
        calibration_short(calibration),
        tiles_html(
            (f"{len(calibration.told):,}", "values told"),
            (f"{documented:,}", "documented"),
            (f"{len(calibration.assumed):,}", "assumed"),
            (f"{certificate.sequences:,}", "sequences compared"),
            (f"{certificate.disagreements:,}", "disagree"),
        ),
        text_html(line.strip() for line in calibration_lines(calibration)),
        *parts,
        *(
            folded_html(f"A sequence that would tell {', '.join(paths)}", code_html(repr(sequence)))
            for sequence, paths in telling_of(calibration).items()
        ),
        folded_html("What the probes took", table_html(steps_table)),
        folded_html("Values that no probe asks for", text_html([", ".join(calibration.not_asked)])),
    )


def calibration_columns(calibration: Calibration) -> dict[str, Any]:
    """Returns columns with a row per value, in the order of finding."""
    rows = calibration.report
    return {
        "field": [finding.path for finding in rows],
        "value": [str(finding.value) for finding in rows],
        **columns_of(rows, "kind because"),
        "rivals": [", ".join(map(str, finding.rivals)) for finding in rows],
        "probe": [finding.probe or None for finding in rows],
    }


def calibration_data(calibration: Calibration) -> dict[str, Any]:
    """Returns JSON data: the certificate, each value with how sure it is, and the probes."""
    certificate, campaign = calibration.certificate, calibration.campaign
    return {
        "device": calibration.spec.title,
        "findings": plain(calibration.report),
        "witnesses": [
            {**fields(witness, "path"), "changes": plain(dict(witness.changes)),
             **fields(witness, "sequences telling")}
            for witness in calibration.witnesses
        ],
        "certificate": {
            **plain(certificate), "decided": dict(certificate.decided),
            "states": list(map(repr, certificate.states)), "holds": certificate.holds,
        },
        **fields(calibration, "not_asked"),
        "campaign": None if campaign is None else report_data(campaign),
        **fields(calibration, "steps seconds"),
    }  # fmt: skip
