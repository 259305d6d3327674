"""Comparisons as HTML: where two traces agree, and the SMs on which they first do not."""

from __future__ import annotations

from markupsafe import Markup

from tbsched.comparison.compare import Diff, Divergence
from tbsched.comparison.times import TimeDiff
from tbsched.comparison.verify import Score
from tbsched.show.html.pages import card, rendered
from tbsched.show.html.parts import (
    folded_html,
    keys_html,
    more_of,
    note_html,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.show.html.svg.sm_map import Fill, Tile, map_html
from tbsched.show.layout.names import label
from tbsched.show.layout.topology import topology_of
from tbsched.show.text.differences import (
    diff_parts,
    diff_short,
    score_notes,
    score_short,
    time_diff_short,
    time_diff_text,
)
from tbsched.show.text.tables import table_of
from tbsched.show.words import counted, percent_words, seconds_words

_LAUNCHES_DRAWN = 2_000
_ROWS_SHOWN = 50
_STYLES = ("fine", "mid", "off")


def diff_html(diff: Diff) -> str:
    """What ``print`` says, each launch as a mark, and a map of the first difference."""
    return card(diff_short(diff), diff_part(diff))


def diff_part(diff: Diff) -> Markup:
    """A comparison within another view."""
    lines, table, more = diff_parts(diff)
    found = diff.first_divergence
    parts = [text_html(lines), _launch_marks(diff)]
    if found is not None and len(found.sms):
        parts.append(_difference_map(diff, found))
    if table is not None:
        parts += [table_html(table, "Where they differ"), text_html(more, style="note")]
    return Markup("\n").join(parts)


def _launch_marks(diff: Diff) -> Markup:
    """A mark per launch: agreement on every block, on each SM's number, or neither."""
    marks = []
    for number, (launch, same) in enumerate(
        zip(diff.a.sequence.launches[:_LAUNCHES_DRAWN], diff.launches, strict=False)
    ):
        state = 0 if same.exact else 1 if same.occupancy else 2
        words = (
            "every block is on the same SM",
            "each SM has the same number of blocks, in another order",
            "SMs have different numbers of blocks",
        )[state]
        marks.append((_STYLES[state], f"launch {number}: {label(launch)}\n{words}"))
    legend = keys_html(
        (
            ("#009e73", "every block alike"),
            ("#e69f00", "another order"),
            ("#c8322b", "other numbers of blocks"),
        )
    )
    more = more_of(len(diff.launches), _LAUNCHES_DRAWN, "launch", "launches")
    drawn = rendered("marks.html", heading="Launches", marks=marks)
    return Markup("\n").join([drawn, legend, note_html(more)])


def _difference_map(diff: Diff, found: Divergence) -> Markup:
    """Of the launch that differs first: SMs with more blocks in a, and in b."""
    topology = topology_of(diff.a.device)
    apart = found.b_blocks - found.a_blocks
    most = max(int(abs(apart).max(initial=0)), 1)
    tiles = []
    for sm, by in enumerate(apart.tolist()):
        a, b = int(found.a_blocks[sm]), int(found.b_blocks[sm])
        lines = [topology.place_of(sm), f"{counted(a, 'block')} in a, {b} in b"]
        if found.capacity is not None:
            room, bound = found.capacity.blocks[sm], found.capacity.limiter[sm]
            lines.append(f"the model had room for {room}, bound by {bound}")
        fills = (Fill(abs(by) / most, style="less" if by < 0 else "more"),) if by else ()
        style = "flip" if abs(by) > 0.6 * most else "in"
        tiles.append(Tile("\n".join(lines), fills, f"{by:+}" if by else "", style))
    keys = (("var(--less)", "more blocks in a"), ("var(--more)", "more blocks in b"))
    heading = f"Launch {found.launch}: blocks on each SM in b, less those in a"
    return map_html(topology, tiles, heading) + keys_html(keys)


def time_diff_html(diff: TimeDiff) -> str:
    """Shares of pairs and blocks that agree, and a row per launch."""
    rows = [
        (str(number), *(f"{100 * x:+.2f} %" for x in (one.start_error, one.end_error)),
         f"{100 * one.starts:.1f} %")
        for number, one in enumerate(diff.launches[:_ROWS_SHOWN])
    ]  # fmt: skip
    headings = ("launch", "start", "end", "blocks that start alike")
    return card(
        time_diff_short(diff),
        text_html([time_diff_text(diff)]),
        tiles_html(
            (f"{diff.pairs_agreeing:,} of {diff.pairs:,}", "pairs concurrent alike"),
            (f"{diff.starts_agreeing:,} of {diff.blocks:,}", "blocks start alike"),
            (f"{100 * diff.makespan_error:+.2f} %", f"of makespan {seconds_words(diff.makespan)}"),
        ),
        table_html(
            table_of(headings, rows, left=()),
            "Predicted less observed, in durations of the launch's blocks",
            more=more_of(len(diff.launches), _ROWS_SHOWN, "launch", "launches"),
        ),
    )


def score_html(score: Score) -> str:
    """The shares, and the first sequence that differs."""
    shares = [
        ("every block", score.exact, score.launches),
        ("blocks per SM", score.occupancy, score.launches),
        ("whole sequences", score.whole, score.sequences),
    ]
    bars = [
        (words, 100 * count / max(total, 1), f"{percent_words(count, total)} %")
        for words, count, total in shares
    ]
    parts = [
        tiles_html(
            (f"{score.sequences:,}", "sequences"),
            (f"{score.launches:,}", "launches"),
            (f"{len(score.skipped):,}", "not predicted"),
        ),
        rendered("bars.html", bars=bars),
        text_html(score_notes(score), style="note"),
    ]
    if score.misses:
        parts.append(folded_html("The first one that differs", diff_part(score.misses[0])))
    return card(score_short(score), *parts)
