"""Comparisons as text: whether two traces agree, and where they first do not."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from tbsched.comparison.compare import LEVELS, Diff, Divergence
from tbsched.comparison.times import TimeDiff
from tbsched.comparison.verify import Score
from tbsched.program.arrays import Int32Array
from tbsched.show.layout.names import cut
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted, launch_words, limiter_words, percent_words, seconds_words
from tbsched.traces.trace import Trace

_ROWS_SHOWN = 12


def diff_short(diff: Diff) -> str:
    """How many launches agree, and how closely."""
    total = len(diff.launches)
    levels = ((level, sum(getattr(x, level) for x in diff.launches)) for level in LEVELS)
    return ", ".join(f"{level} {same} of {total} launches" for level, same in levels)


def diff_text(diff: Diff) -> str:
    """Whether two traces agree, and where they first do not, explained."""
    lines, table, more = diff_parts(diff)
    return "\n".join([*lines, *([] if table is None else [render(table)]), *more])


def diff_parts(diff: Diff) -> tuple[list[str], Table | None, list[str]]:
    """The text in three parts: before the table, the table if there is one, and after it."""
    found = diff.first_divergence
    total = len(diff.launches)
    if found is None:
        same_all = f"{who(diff.a)} and {who(diff.b)} agree on every block of {total} launches."
        return [same_all], None, []
    same = {level: sum(getattr(launch, level) for launch in diff.launches) for level in LEVELS}
    head = (
        f"{who(diff.a)} (a) and {who(diff.b)} (b) agree in {same['occupancy']} of {total} "
        f"launches on the blocks of each SM, in {same['exact']} on every block."
    )
    launch = diff.a.sequence.launches[found.launch]
    name = f"{cut(launch.name)}, " if launch.name else ""
    first = f"First difference: launch {found.launch} ({name}{launch_words(launch)})."
    of_kind = _occupancy_parts if found.level == "occupancy" else _order_parts
    before, table, more = of_kind(diff, found)
    return [head, first, *before], table, more


def who(trace: Trace) -> str:
    """Who says where the blocks went: a model and its policy, or a GPU."""
    model = trace.device.details.get("model")
    return f"model {model}/{trace.device.details.get('policy')}" if model else trace.device.name


def _occupancy_parts(diff: Diff, found: Divergence) -> tuple[list[str], Table, list[str]]:
    a, b = diff.a[found.launch], diff.b[found.launch]
    lines = [f"placed before the next event: {a.placed} blocks in a, {b.placed} in b"]
    for letter, trace, placement in (("a", diff.a, a), ("b", diff.b, b)):
        if placement.limiter is not None:
            why = limiter_words(placement.limiter, trace.device)
            lines.append(f"{letter}: blocks wait because {why}")
    capacity = found.capacity
    rows = []
    for sm in found.sms[:_ROWS_SHOWN]:
        rows.append([str(sm), str(found.a_blocks[sm]), str(found.b_blocks[sm])])
        if capacity is not None:
            rows[-1] += [str(capacity.blocks[sm]), capacity.limiter[sm]]
    headings = ("SM", "a", "b", "room", "bound by")[: 3 if capacity is None else 5]
    more = []
    if len(found.sms) > _ROWS_SHOWN:
        more.append(f"and {len(found.sms) - _ROWS_SHOWN} SMs more")
    if capacity is not None:
        more.append("room: blocks of this launch that the model had room for when it came")
        more.append(_candidates(capacity.blocks, capacity.limiter))
    return lines, table_of(headings, rows, left=(4,)), more


def _candidates(blocks: Int32Array, limiter: tuple[str, ...]) -> str:
    kinds: dict[tuple[int, str], list[int]] = {}
    for sm, (room, bound) in enumerate(zip(blocks.tolist(), limiter, strict=True)):
        kinds.setdefault((room, bound), []).append(sm)
    parts = [
        f"{len(sms)} with room for {room} ({bound}; SM {_few(sms)})"
        for (room, bound), sms in sorted(kinds.items(), reverse=True)
    ]
    return "SMs in all: " + "; ".join(parts[:_ROWS_SHOWN])


def _few(sms: list[int]) -> str:
    return ", ".join(map(str, sms[:4])) + (", ..." if len(sms) > 4 else "")


def _order_parts(diff: Diff, found: Divergence) -> tuple[list[str], Table, list[str]]:
    a, b = diff.a[found.launch].smid, diff.b[found.launch].smid
    rows = [(str(block), str(a[block]), str(b[block])) for block in found.blocks[:_ROWS_SHOWN]]
    more = []
    if len(found.blocks) > _ROWS_SHOWN:
        more.append(f"and {len(found.blocks) - _ROWS_SHOWN} blocks more")
    lines = ["each SM has the same number of blocks, in another order:"]
    return lines, table_of(("block", "SM in a", "SM in b"), rows, left=()), more


def time_diff_short(diff: TimeDiff) -> str:
    """Shares of pairs and blocks that agree."""
    pairs, starts = (diff.pairs_agreeing, diff.pairs), (diff.starts_agreeing, diff.blocks)
    return f"{_share(*pairs)} of pairs concurrent alike, {_share(*starts)} of starts"


def time_diff_text(diff: TimeDiff) -> str:
    """Shares of pairs and blocks that agree, and the makespans."""
    return (
        f"{_share(diff.pairs_agreeing, diff.pairs)} of {diff.pairs} pairs of launches "
        f"concurrent alike, {_share(diff.starts_agreeing, diff.blocks)} of {diff.blocks} "
        f"blocks start within {100 * diff.tolerance:g} % of their launch's duration, makespan "
        f"{100 * diff.makespan_error:+.2f} % of {seconds_words(diff.makespan)}"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "all"


def score_short(score: Score) -> str:
    """How often a predictor is right."""
    share = percent_words(score.exact, score.launches)
    words = f"every block right in {score.exact:,} of {score.launches:,} launches ({share} %)"
    return f"{score.device}/{score.policy}: {words}"


def score_text(score: Score) -> str:
    """The shares, and what was not predicted or not right."""
    return "\n".join([score_short(score), "", render(scores_table([score])), *score_notes(score)])


def scores_table(scores: Iterable[Score]) -> Table:
    """A row per predictor."""
    rows = [
        (
            f"{score.device}/{score.policy}",
            str(score.sequences),
            str(score.launches),
            percent_words(score.occupancy, score.launches),
            percent_words(score.exact, score.launches),
            percent_words(score.whole, score.sequences),
        )
        for score in scores
    ]
    return table_of(
        ("predictor", "sequences", "launches", "occupancy %", "exact %", "sequences %"), rows
    )


def score_notes(score: Score) -> list[str]:
    """What was not predicted, and what differs, in words."""
    notes = []
    if score.skipped:
        refused = counted(len(score.skipped), "sequence")
        notes.append(f"not predicted: {refused}, the first: {score.skipped[0][1]}")
    if score.misses:
        differ = counted(len(score.misses), "sequence differs", "sequences differ")
        notes.append(f"{differ} in occupancy: Score.misses has them")
    return notes
