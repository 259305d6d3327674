"""What campaigns found."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from tbsched.campaigns.results import Counterexample, Report
from tbsched.campaigns.space.coverage import Coverage
from tbsched.counting import counted
from tbsched.traces.trace import Trace
from tbsched.views.cards import (
    card,
    code_html,
    folded_html,
    note_html,
    text_html,
    tiles_html,
)
from tbsched.views.differences import diff_data, diff_part, diff_text
from tbsched.views.plain import columns_of, fields, plain
from tbsched.views.tables import Lines
from tbsched.views.words import more_of

_COUNTEREXAMPLES_SHOWN = 10
_CODE = 20_000  # characters
_NUMBERS = (
    "seed predictor policy level examples disagreements launches blocks occupancy exact replayed "
    "unpredicted shrinking seconds ended"
)


def counterexample_short(counterexample: Counterexample) -> str:
    """Its name, and the least that is known of its sequence."""
    how = "shrunk" if counterexample.shrunk else "not shrunk"
    return f"{counterexample.id}, {counted(len(counterexample.sequence), 'event')}, {how}"


def counterexample_text(counterexample: Counterexample) -> Lines:
    """Where prediction and observation differ, and the test to paste."""
    return [*order_lines(counterexample), *diff_text(counterexample.diff), "", counterexample.code]


def order_lines(counterexample: Counterexample) -> list[str]:
    """Returns launches of a program that a GPU ran in another order; none of other sequences."""
    lines = []
    for first, second in counterexample.pairs:
        prediction, observation = (
            _order(trace, first, second)
            for trace in (counterexample.prediction, counterexample.observation)
        )
        lines.append(
            f"launches {first} and {second}: predicted {prediction}, observed {observation}"
        )
    return lines


def _order(trace: Trace, first: int, second: int) -> str:
    """Returns how long after one launch ended the other started, in words."""
    end_ns, start_ns = trace[first].end_ns, trace[second].start_ns
    assert end_ns is not None
    assert start_ns is not None
    after = (int(start_ns.min()) - int(end_ns.max())) / 1e3
    if after >= 0:
        return f"{second} starts {after:.1f} us after the end of {first}"
    return f"{second} starts {-after:.1f} us before the end of {first}"


def report_short(report: Report) -> str:
    """Returns how much was compared, and how much differed."""
    return (
        f"{report.predictor}/{report.policy} by {report.level}, "
        f"{counted(report.examples, 'sequence')}, {report.disagreements:,} disagree, "
        f"{counted(len(report.counterexamples), 'counterexample')}"
    )


def report_text(report: Report) -> Lines:
    """Returns the numbers of a campaign, and its counterexamples."""
    lines: Lines = [*report_lines(report)]
    headings = counterexample_headings(report)
    for heading, example in zip(headings, report.counterexamples, strict=True):
        first, *rest = counterexample_text(example)
        lines += ["", f"{heading}: {first}", *rest]
    return lines


def counterexample_headings(report: Report) -> list[str]:
    """Returns what each counterexample is called."""
    numbers_by_id = {
        counterexample.id: index for index, counterexample in enumerate(report.counterexamples, 1)
    }
    headings = []
    for index, example in enumerate(report.counterexamples, 1):
        heading = f"counterexample {index}" + ("" if example.shrunk else " (not shrunk)")
        headings.append(
            heading + (f" (like {numbers_by_id[example.like]})" if example.like else "")
        )
    return headings


def report_lines(report: Report) -> list[str]:
    """Returns the numbers of a campaign; those that say more of the one before are moved in."""
    kinds = sum(counterexample.like is None for counterexample in report.counterexamples)
    rate = report.examples / report.seconds if report.seconds else 0.0
    lines = [
        f"{report.predictor}/{report.policy} by {report.level}: "
        f"{counted(report.examples, 'sequence')} in "
        f"{report.seconds:.1f} s ({rate:,.0f}/s), seed {report.seed}, ended by {report.ended}",
        f"  {counted(report.launches, 'launch', 'launches')}, {counted(report.blocks, 'block')}: "
        f"occupancy agrees in {_percent(report.occupancy, report.launches)} of launches"
        # At level occupancy only one latent state was tried, which says little of each block.
        + (
            f", every block in {_percent(report.exact, report.launches)}"
            if report.level == "exact"
            else ""
        ),
        f"  {counted(report.disagreements, 'sequence disagrees', 'sequences disagree')}, "
        f"{counted(len(report.counterexamples), 'distinct counterexample')}"
        + (f" of {kinds} kinds" if kinds < len(report.counterexamples) else "")
        + (
            f" ({counted(report.shrinking, 'sequence')} tried to shrink them)"
            if report.shrinking
            else ""
        ),
    ]
    lines += coverage_lines(report.coverage)
    if report.replayed:
        replayed = sum(example.replayed for example in report.counterexamples)
        lines.append(f"  {report.replayed} of the corpus tried again, {replayed} still disagree")
    if report.unpredicted:
        lines.append(f"  {report.unpredicted:,} recorded only: the model cannot predict them")
    for lost in report.lost:
        lines.append(
            f"  lost: {counted(lost.count, 'sequence')} from number {lost.begin:,} on: "
            f"{lost.reason}"
        )
    if report.unstable:
        lines.append(f"  {len(report.unstable)} unstable, the first: {report.unstable[0].reason}")
    return lines


def coverage_lines(coverage: Coverage) -> list[str]:
    """Returns lines: launches of each kind, and what refused those that did not fit."""
    lines = []
    for words, launches in (
        ("launches with", coverage.ways),
        ("launches that did not fit, by what refused them", coverage.refused),
    ):
        if launches:
            kinds_words = ", ".join(f"{name} {times:,}" for name, times in launches.most_common())
            lines.append(f"  {words}: {kinds_words}")
    for words, idle in (("would have shown", False), ("would not have shown", True)):
        names = [name for name, times in coverage.decided.items() if (times == 0) == idle]
        if names:
            lines.append(f"  {words}: {', '.join(names)}")
    return lines


def _percent(part: int, total: int) -> str:
    # A miss must show: what rounds to 100 without being so is cut, not rounded.
    return "-" if not total else f"{int(10_000 * part / total) / 100:.2f} %"


def counterexample_html(counterexample: Counterexample) -> str:
    """Returns HTML: where prediction and observation differ, and the test to paste."""
    return card(
        counterexample_short(counterexample),
        text_html(order_lines(counterexample)),
        diff_part(counterexample.diff),
        _code(counterexample, is_open=True),
    )


def report_html(report: Report) -> str:
    """Returns HTML: the numbers of a campaign, and its counterexamples to unfold."""
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
            folded_html(f"{heading}: {counterexample_short(found)}",
                        text_html(order_lines(found)), diff_part(found.diff),
                        _code(found, is_open=False), is_open=index == 0)
            for index, (heading, found) in enumerate(
                zip(counterexample_headings(report), shown, strict=False)
            )
        ),
        note_html(more_of(len(report.counterexamples), len(shown), "counterexample")),
    )  # fmt: skip


def _code(counterexample: Counterexample, *, is_open: bool) -> Markup:
    """Returns HTML: the test to paste, folded unless ``is_open``."""
    code = counterexample.code
    if len(code) > _CODE:
        code = f"{code[:_CODE]}\n… and {len(code) - _CODE:,} characters more"
    return folded_html("The test to paste", code_html(code), is_open=is_open)


def report_columns(report: Report) -> dict[str, Any]:
    """Returns columns with a row per counterexample, in the order in which they were found."""
    counterexamples = report.counterexamples
    launches = [example.sequence.launches for example in counterexamples]
    first = [example.diff.first_divergence for example in counterexamples]
    # Of launches in another order, blocks may all be where they are predicted.
    differing = [
        (divergence.level, divergence.launch, len(divergence.blocks), len(divergence.sms))
        if divergence is not None
        else ("order", example.pairs[0][1], 0, 0)
        for example, divergence in zip(counterexamples, first, strict=True)
    ]
    return {
        **columns_of(counterexamples, "id like shrunk replayed"),
        "events": [len(example.sequence) for example in counterexamples],
        "launches": list(map(len, launches)),
        "blocks": [sum(launch.blocks for launch in of_example) for of_example in launches],
        "level": [level for level, _, _, _ in differing],
        "launch": [launch for _, launch, _, _ in differing],
        "name": [
            of_example[launch].name
            for of_example, (_, launch, _, _) in zip(launches, differing, strict=True)
        ],
        "different_blocks": [blocks for _, _, blocks, _ in differing],
        "different_sms": [sms for _, _, _, sms in differing],
    }


def report_data(report: Report) -> dict[str, Any]:
    """Returns JSON data: the numbers of a campaign, and its counterexamples."""
    return {
        **fields(report, _NUMBERS),
        "counterexamples": list(map(counterexample_data, report.counterexamples)),
        "unstable": [fields(case, "events=sequence reason") for case in report.unstable],
        "lost": plain(report.lost),
        "coverage": fields(report.coverage, "ways refused decided"),
    }


def counterexample_data(counterexample: Counterexample) -> dict[str, Any]:
    """Returns JSON data: the sequence, where the traces differ, and the test to paste."""
    own_fields = fields(counterexample, "id like shrunk replayed events=sequence")
    pairs = [[*pair] for pair in counterexample.pairs]
    return {
        **own_fields,
        "diff": diff_data(counterexample.diff),
        "pairs": pairs,
        "code": counterexample.code,
    }
