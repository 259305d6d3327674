"""What campaigns found, as HTML."""

from __future__ import annotations

from markupsafe import Markup

from tbsched.calibration.finding import ASSUMED, DOCUMENTED, TOLD
from tbsched.calibration.results import Calibration
from tbsched.campaigns.results import Counterexample, Report
from tbsched.show.html.differences import diff_part
from tbsched.show.html.pages import card
from tbsched.show.html.parts import (
    code_html,
    folded_html,
    more_of,
    note_html,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.show.text.campaigns import (
    calibration_lines,
    calibration_rows,
    calibration_short,
    counterexample_headings,
    counterexample_short,
    report_lines,
    report_short,
    telling_of,
)
from tbsched.show.text.tables import table_of

_COUNTEREXAMPLES_SHOWN = 10
_HEADINGS = {
    TOLD: "Told: the observations leave no other value",
    DOCUMENTED: "Documented: not told, and NVIDIA documents it",
    ASSUMED: "Assumed: another value may be right",
}
_CODE = 20_000  # characters


def counterexample_html(found: Counterexample) -> str:
    """Where prediction and observation differ, and the test to paste."""
    return card(counterexample_short(found), diff_part(found.diff), _code(found, is_open=True))


def report_html(report: Report) -> str:
    """The numbers of a campaign, and its counterexamples to unfold."""
    shown = report.counterexamples[:_COUNTEREXAMPLES_SHOWN]
    return card(
        report_short(report),
        tiles_html(
            (f"{report.examples:,}", "sequences"),
            (f"{report.launches:,}", "launches"),
            (f"{report.blocks:,}", "blocks"),
            (f"{report.disagreements:,}", "sequences disagree"),
            (f"{len(report.counterexamples):,}", "counterexamples"),
        ),
        text_html(line.strip() for line in report_lines(report)),
        *(
            folded_html(f"{heading}: {counterexample_short(found)}", diff_part(found.diff),
                        _code(found, is_open=False), is_open=number == 0)
            for number, (heading, found) in enumerate(
                zip(counterexample_headings(report), shown, strict=False)
            )
        ),
        note_html(more_of(len(report.counterexamples), len(shown), "counterexample")),
    )  # fmt: skip


def calibration_html(calibration: Calibration) -> str:
    """The certificate, each value with how sure it is, and what the probes took."""
    titles = ("field", "value", "how sure", "because")
    certificate = calibration.certificate
    documented = sum(finding.kind == DOCUMENTED for finding in calibration.report)
    rows = calibration_rows(calibration)
    parts = [
        table_html(table_of(titles, own, left=(0, 3)), heading=heading)
        for kind, heading in _HEADINGS.items()
        if (own := [row for row in rows if row[2] == kind])
    ]
    steps = [
        (step.probe, f"{step.sequences:,}", f"{step.launches:,}", f"{step.seconds:.1f}",
         step.failure or "")
        for step in calibration.steps
    ]  # fmt: skip
    taken = table_of(("probe", "sequences", "launches", "seconds", "told nothing, because"), steps)
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
        folded_html("What the probes took", table_html(taken)),
        folded_html("Values that no probe asks for", text_html([", ".join(calibration.not_asked)])),
    )


def _code(found: Counterexample, *, is_open: bool) -> Markup:
    code = found.code
    if len(code) > _CODE:
        code = f"{code[:_CODE]}\n… and {len(code) - _CODE:,} characters more"
    return folded_html("The test to paste", code_html(code), is_open=is_open)
