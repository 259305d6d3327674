"""Several GPUs of one program: who waits for whom, what moves, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.advice.account.account import Account
from tbsched.advice.account.idle import HOST, NO_WORK, UNRECORDED
from tbsched.advice.account.peers import COLLECTIVE, PEER, SLOWED, TRANSFER
from tbsched.advice.explain.explanation import Explanation
from tbsched.advice.explain.exposed import NEEDS, Exposed
from tbsched.advice.explain.roots import ALL, Root
from tbsched.counting import counted
from tbsched.program.collectives import gpu_word
from tbsched.program.program import Program
from tbsched.views.cards import folded_html, keys_html, table_html
from tbsched.views.layout.lanes import spans_of
from tbsched.views.layout.names import cut, cut_apart
from tbsched.views.svg.timeline import Frame, Names, timeline_html
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import more_of, percent_words, seconds_words

ROOTS_SHOWN, EXPOSED_SHOWN, COLLECTIVES_SHOWN = 8, 8, 8
_MIN_SHARE = 0.005  # share of the time of all GPUs from which on a row is shown
_BY = 72  # letters
_TALL = (420, 40, 18)  # pixels: of all rows, and of one at most and at least
_KEPT = {
    HOST: "the host had not launched the next kernel: {by}",
    NEEDS: "the next kernel needs it, by its stream or an event: {by}",
    NO_WORK: "no kernel came after it",
    UNRECORDED: "the profile does not say when the next kernel was launched: {by}",
}
# What collectives do; the phases that there are not always are told only where there are some.
_PHASES = (
    ("waiting", "waiting for peers"), ("moving", "moving bytes"), ("slowed", "slowed"),
    ("unknown", "waiting or moving, unknown which"),
)  # fmt: skip
_ALWAYS_TOLD = ("waiting", "moving")
_COLOURS = {
    "kernel": "#4c78a8", TRANSFER: "#54a24b", SLOWED: "#8a6d3b", COLLECTIVE: "#9ac68f",
    PEER: "#c8322b", "copy": "#7b3fa0", "migration": "#7b3fa0",
}  # fmt: skip
_IDLE, _IDLE_COLOUR = "idle", "#d0d0d0"


def who(explanation: Explanation, gpu: int) -> str:
    """Returns "rank 1", or "GPU 1" where the ranks are unknown."""
    return gpu_word(gpu, explanation.accounted.activity.ranks)


def ranks_text(explanation: Explanation, cause_word: Callable[[str], str]) -> Lines:
    """Returns what kept the GPUs from working, and communication that no kernel ran beside."""
    if explanation.accounted.collectives is None:
        return []
    parts: Lines = []
    roots, alone = roots_table(explanation, cause_word), exposed_table(explanation)
    if roots is not None:
        parts += ["", "What kept the GPUs from working, all of them together:", roots]
    parts += ["", "Collectives:", collectives_table(explanation)]
    if alone is not None:
        parts += ["", "Bytes that moved with no kernel beside them, and why:", alone]
    return parts


def roots_table(explanation: Explanation, cause_word: Callable[[str], str]) -> Table | None:
    """Returns a table with a row per cause of lost time and its rank; None without loss."""
    total_seconds = explanation.span * len(explanation.accounted.gpus)
    every = [
        root for root in explanation.roots if root.own + root.waited >= _MIN_SHARE * total_seconds
    ]
    shown = every[:ROOTS_SHOWN]
    if not shown:
        return None
    names = cut_apart([root.by for root in shown], _BY)
    steps = len(explanation.accounted.steps.names)
    rows = [
        (
            seconds_words(root.own + root.waited),
            percent_words(round(1e9 * (root.own + root.waited)), round(1e9 * total_seconds)),
            seconds_words(root.waited) if root.waited else "",
            *_saved_words(root, steps),
            "all" if root.gpu == ALL else who(explanation, root.gpu),
            f"{cause_word(root.cause)}: {name}",
        )
        for root, name in zip(shown, names, strict=True)
    ]
    headings = (
        "lost", "%", "of it peers waited", "saves", "on all ranks", *(("per step",) * (steps > 0)),
        "because of", "what it did",
    )  # fmt: skip
    more = more_of(len(explanation.roots), len(rows), "cause")
    last = len(headings) - 1
    return table_of(headings, rows, (last - 1, last), more, wrapped=(last,))


def _saved_words(root: Root, steps: int) -> tuple[str, ...]:
    """Returns the time saved without a cause on its rank, on all ranks, and per step."""
    if root.saves is None or root.saves_on_all is None:
        return ("",) * (3 if steps else 2)
    saved = seconds_words(root.saves), seconds_words(root.saves_on_all)
    return (*saved, seconds_words(root.saves_on_all / steps)) if steps else saved


def exposed_table(explanation: Explanation) -> Table | None:
    """Returns a table with a row per GPU, collective and reason; None: nothing was exposed."""
    every = [row for row in explanation.exposed if row.seconds >= _MIN_SHARE * explanation.span]
    shown = every[:EXPOSED_SHOWN]
    if not shown:
        return None
    rows = [
        (
            seconds_words(row.seconds),
            percent_words(round(1e9 * row.seconds), round(1e9 * explanation.span)),
            who(explanation, row.gpu),
            row.collective,
            kept_words(row),
        )
        for row in shown
    ]
    headings = ("time", "%", "on", "collective", "why no kernel ran beside it")
    return table_of(headings, rows, (2, 3, 4), more_of(len(every), len(rows), "row"), wrapped=(4,))


def kept_words(row: Exposed) -> str:
    """What kept the next kernel from running beside a collective."""
    words = _KEPT.get(row.cause, "not explained: {by} had been launched, and did not wait for it")
    return words.format(by=cut(row.by, _BY))


def collectives_table(explanation: Explanation) -> Table:
    """Returns a table with a row per kind of collective, those that took most time first."""
    rows = collectives_of(explanation.accounted)
    shown = rows[:COLLECTIVES_SHOWN]
    columns = [
        (key, heading)
        for key, heading in _PHASES
        if key in _ALWAYS_TOLD or any(row[key] for row in shown)
    ]
    lines = [
        (row["collective"], f"{row['count']:,}", *(seconds_words(row[key]) for key, _ in columns))
        for row in shown
    ]
    headings = ("collective", "times", *(heading for _, heading in columns))
    return table_of(headings, lines, (0,), more_of(len(rows), len(lines), "kind"))


def collectives_of(account: Account) -> list[dict[str, Any]]:
    """Returns each kind of collective with its count and its seconds on all GPUs, by phase."""
    matches = account.collectives
    if matches is None:
        return []
    until_slow = np.minimum(matches.slow, matches.unknown)
    columns = {
        "waiting": matches.until - matches.begin,
        "moving": np.maximum(until_slow - matches.until, 0),
        "slowed": matches.end - matches.slow,
        "unknown": matches.end - matches.unknown,
    }
    words = [kind.words for kind in matches.collectives.kinds]
    kinds_of_collectives: dict[str, dict[str, Any]] = {
        text: {"collective": text, "count": 0, **dict.fromkeys(columns, 0.0)} for text in words
    }
    for text in words:
        kinds_of_collectives[text]["count"] += 1
    for name, ns in columns.items():
        sums = np.zeros(len(words), np.int64)
        np.add.at(sums, matches.collectives.of, ns)
        for text, length in zip(words, sums.tolist(), strict=True):
            kinds_of_collectives[text][name] += length / 1e9
    return sorted(
        kinds_of_collectives.values(), key=lambda row: -sum(row[name] for name in columns)
    )


def ranks_html(explanation: Explanation, cause_word: Callable[[str], str]) -> list[Markup]:
    """Returns HTML: the tables, and a lane per GPU."""
    if explanation.accounted.collectives is None:
        return []
    parts = [lanes_html(explanation, cause_word)]
    roots, alone = roots_table(explanation, cause_word), exposed_table(explanation)
    if roots is not None:
        parts.append(table_html(roots, "What kept the GPUs from working, all of them together"))
    parts.append(table_html(collectives_table(explanation), "Collectives"))
    if alone is not None:
        title = "Bytes that moved with no kernel beside them, and why"
        parts.append(table_html(alone, title))
    return parts


def lanes_html(explanation: Explanation, cause_word: Callable[[str], str]) -> Markup:
    """Returns HTML: when each GPU ran kernels, moved bytes, waited for a peer, or did nothing."""
    account = explanation.accounted
    parts, labels = account.parts, account.labels
    spans = spans_of(
        tuple(who(explanation, gpu) for gpu in account.gpus), parts.first, parts.second,
        parts.begin, parts.end, f"{len(parts.begin):,} parts",
    )  # fmt: skip
    names = Names(
        [_COLOURS.get(cause, _IDLE_COLOUR) for cause, _ in labels],
        lambda index: cut(labels[index][1], _BY),
        lambda index: f"{cause_word(labels[index][0])}: {labels[index][1]}",
    )
    causes = list(dict.fromkeys(cause if cause in _COLOURS else _IDLE for cause, _ in labels))
    keys = (
        (_COLOURS.get(cause, _IDLE_COLOUR), cause if cause == _IDLE else cause_word(cause))
        for cause in causes
    )
    drawn = timeline_html(Frame(spans, *_TALL), names, "each GPU")
    return folded_html("Each GPU, as measured", keys_html(keys), drawn, is_open=True)


def roots_data(explanation: Explanation) -> list[dict[str, Any]]:
    """What kept the GPUs from working, as what JSON can hold."""
    return [_root_data(explanation, root) for root in explanation.roots]


def _root_data(explanation: Explanation, root: Root) -> dict[str, Any]:
    name = None if root.gpu == ALL else who(explanation, root.gpu)
    return {**root._asdict(), "who": name}


def ranks_table(program: Program) -> Table:
    """Returns a table with a row per rank of a program that was read from several profiles."""
    rows = [
        (
            str(rank.rank),
            rank.file,
            ", ".join(map(str, rank.gpus)),
            seconds_words(rank.added),
            "unknown" if rank.uncertain is None else seconds_words(rank.uncertain),
        )
        for rank in program.ranks
    ]
    return table_of(("rank", "profile", "GPUs", "added to its times", "uncertain by"), rows, (1,))


def ranks_words(program: Program) -> str:
    """Returns how many ranks, how much they ran, and how long it took."""
    assert program.activity is not None
    work = program.activity.work
    took = int(work["end_ns"].max() - work["start_ns"].min()) / 1e9
    on = "" if program.device is None else f" on {program.device}"
    ran = counted(len(work), "kernel, copy or memset", "kernels, copies and memsets")
    return f"{ran} of {len(program.ranks)} ranks in {seconds_words(took)}{on}, {program.format}"
