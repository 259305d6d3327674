"""Why a program of a profile took so long."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from tbsched.advice.account.account import BUSY, AccountRow
from tbsched.advice.account.idle import (
    AFTER,
    HOST,
    HOST_FUNCTION,
    NO_WORK,
    NOTHING,
    SYNCHRONIZE,
    UNEXPLAINED,
    UNRECORDED,
    WITHIN,
    without_context,
)
from tbsched.advice.account.peers import COLLECTIVE, PEER, SLOWED, TRANSFER
from tbsched.advice.change import Change
from tbsched.advice.explain.explanation import COPY, Cause, Explanation, Gap
from tbsched.counting import counted
from tbsched.views.assumed import assumed_html, assumed_lines
from tbsched.views.cards import (
    bars_html,
    card,
    folded_html,
    keys_html,
    legend_html,
    note_html,
    table_html,
    text_html,
    tiles_html,
)
from tbsched.views.layout.colours import TRANSFER_COLOUR
from tbsched.views.layout.lanes import Spans, spans_by_stream, spans_measured, spans_of
from tbsched.views.layout.names import behind_words, cut, cut_apart, numbered
from tbsched.views.plain import columns_of, fields, plain
from tbsched.views.programs import program_names, streams_timeline
from tbsched.views.ranks import collectives_of, ranks_html, ranks_text, roots_data, who
from tbsched.views.svg.timeline import Names
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.waits import CAUSE_WORDS, waits_of
from tbsched.views.words import (
    WORTH,
    configured_unit,
    is_worth_it,
    more_of,
    percent_words,
    seconds_words,
)

GAPS_SHOWN, CHANGES_SHOWN = 12, 8
ROWS_SHOWN = 6  # of a cause
_GPUS_SHOWN = 2  # of which each row is shown, those that were idle longest
_SMALL = 0.05  # share of the span up to which a row is not in the first lines
_MOSTLY = 0.5  # share of the idle time, or of all time
_LITTLE = 0.1  # share of the idle time that the best change saves
_MIN_SHARE = 0.005  # share of the span from which on a row is shown
_PARTS_SHOWN = 3
_FULL = 0.5  # share of the GPU; kernels that fill less leave room for others
_NAME = 40  # letters
_BY, _CHANGE = 72, 600
_ALL = "of that, all "
_KINDS = {
    "idle": "nothing ran",
    "copies": "no kernel ran, only copies",
    "stream": "nothing of this stream ran",
    "order": "only if it need not wait: SMs were idle",
}
# Beyond the causes of launches on the GPU.
_OF_HOST = {
    HOST: "for the host: {by} (launched sooner, it would have started sooner)",
    SYNCHRONIZE: "for the host, which waited: {by}",
    COPY: "for a copy: {by}",
    UNRECORDED: "for a launch call that the profile does not have",
    UNEXPLAINED: "not explained: nothing that is known kept it from running at {when}",
}
_IN_A_WORD = {
    "kernel": "kernels",
    COLLECTIVE: "collectives alone: transfer, and waiting for other GPUs",
    PEER: "waiting in collectives for a peer",
    TRANSFER: "collectives alone, moving bytes",
    SLOWED: "collectives alone, slower than without kernels beside them",
    "copy": "copies alone",
    "migration": "migrations of unified memory alone",
    HOST: "the host had not launched what came next",
    SYNCHRONIZE: "the host waited for another GPU",
    HOST_FUNCTION: "for a host function",
    "stream": "from the end of the work before it in its stream to its start",
    "event": "from the event that it waited for to its start",
    "value": "for a value in memory",
    "node": "between nodes of graphs",
    "first_use": "kernels being loaded",
    "queue": "behind a launch that waits for room",
    "hardware_queue": "behind other streams' work in its hardware queue",
    "legacy_stream": "for work of the legacy stream",
    "turn": "for the thread block scheduler to turn to it",
    UNRECORDED: "launch call not in the profile",
    UNEXPLAINED: "not explained",
    NO_WORK: "nothing more to do",
}
_SHOWN = 20  # gaps, and changes
_DRAWN = 400  # gaps, the most costly ones
_GAP_ROWS = {
    "idle": "GPU idle",
    "copies": "copies alone",
    "stream": "stream idle",
    "order": "SMs idle",
}
# Colours of causes, those that cost most first; the others are grey. Kernels have other colours.
_CAUSES = ("#c8322b", "#7b3fa0", "#8a6d3b", "#3f6f73", "#d98ba0", "#5a5f2a")


def explanation_short(explanation: Explanation) -> str:
    """Returns how long it took, how much of that the GPU was idle, and the best change."""
    work = len(explanation.accounted.activity.work)
    launches = counted(len(explanation.program.sequence.launches), "launch", "launches")
    if not explanation.program.sequence.launches:
        launches = counted(work, "kernel, copy or memset", "kernels, copies and memsets")
    words = f"{launches} in {seconds_words(explanation.span)}, {idle_words(explanation)}"
    if explanation.notes:
        return words
    helping = [change for change in changes_worth_it(explanation) if not change.is_bound]
    if not helping:
        nothing = "nothing worth changing was found"
        if late_words(explanation):
            nothing = "no change that was tried helps"
        return f"{words}, {nothing}{_where_predicted(explanation)}"
    return f"{words}, {counted(len(helping), 'change')} would help"


def _where_predicted(explanation: Explanation) -> str:
    """Returns words for the GPU whose changes are predicted, if there are several."""
    rows = explanation.program.measured["work"]
    if len(explanation.accounted.gpus) < 2 or rows[0] < 0:
        return ""
    return f" on GPU {explanation.accounted.activity.work['gpu'][rows[0]]}, the only one predicted"


def changes_worth_it(explanation: Explanation) -> list[Change]:
    """The changes that save enough to be shown; a bound of what can be saved is one of them."""
    return [change for change in explanation.changes if is_worth_it(change.saves, explanation.span)]


def idle_words(explanation: Explanation) -> str:
    """Returns how long nothing ran."""
    idle, gpus = sum(explanation.idle.values()), len(explanation.accounted.gpus)
    share = percent_words(round(1e9 * idle), round(1e9 * explanation.span * gpus))
    unknown = sum(row.seconds for row in explanation.account if row.cause == COLLECTIVE)
    more = f", and {seconds_words(unknown)} in collectives, waiting for a peer or moving bytes"
    more = more if unknown >= _MIN_SHARE * explanation.span else ""
    if explanation.accounted.collectives is not None:
        return f"{gpus} GPUs idle or waiting for a peer {share} % of it{more}"
    if gpus > 1:
        return f"{gpus} GPUs idle {share} % of it{more}"
    return f"the GPU idle {seconds_words(idle)} of it ({share} %){more}"


def explanation_text(explanation: Explanation) -> Lines:
    """Returns where the time went, what would shorten the program, and the gaps."""
    parts: Lines = [explanation_short(explanation)]
    if explanation.prediction is not None:
        parts.append(model_words(explanation))
        parts += assumed_lines(explanation.assumed_rules, explanation.prediction.device)
    parts += [*explanation.notes, *unrecorded_words(explanation), *late_words(explanation)]
    parts += ranks_text(explanation, cause_word)
    for gpu in gpus_shown(explanation):
        parts += ["", *gpu_words(explanation, gpu), account_table(explanation, gpu)]
    parts += ["", changes_table(explanation)] if changes_worth_it(explanation) else []
    parts += ["", gaps_table(explanation) if explanation.gaps else no_gaps_words(explanation)]
    assumed = [f"- {sentence}" for sentence in assumed_words(explanation)]
    parts += ["", "What the profile does not say:", *assumed] if assumed else []
    return parts


def assumed_words(explanation: Explanation) -> list[str]:
    """Returns what the profile does not say, and what is wrong with it."""
    sentences = [*explanation.program.assumed, *explanation.accounted.notes]
    if explanation.accounted.clocks_differ:
        gpus = ", ".join(map(str, explanation.accounted.clocks_differ))
        sentences.insert(
            0,
            f"The clocks of the host and of GPU {gpus} do not fit: work ran before it was "
            "launched, so what the host did is not known.",
        )
    duplicates = explanation.accounted.activity.duplicates
    if duplicates:
        sentences.insert(
            0, f"{duplicates:,} records stand in the file more than once: each counts once."
        )
    return sentences


def unrecorded_words(explanation: Explanation) -> list[str]:
    """Returns what to record if the profile does not say what the host did while idle."""
    idle = [row for row in explanation.account if row.cause not in BUSY]
    nothing = sum(row.seconds for row in idle if row.by.startswith(NOTHING))
    if nothing <= _MOSTLY * sum(row.seconds for row in idle) or nothing < _SMALL * explanation.span:
        return []
    return [
        f"What the host did in {seconds_words(nothing)} of that, the profile does not say: record "
        "it again with_stack=True (torch.profiler), or with NVTX ranges (Nsight Systems)."
    ]


def late_words(explanation: Explanation) -> list[str]:
    """Returns who was late, if a GPU was mostly idle and no change saves much of that."""
    idle = [row for row in explanation.account if row.cause not in BUSY]
    total = sum(row.seconds for row in idle)
    saves = [change.saves for change in explanation.changes if not change.is_bound]
    if (
        explanation.prediction is None
        or explanation.accounted.collectives is not None
        or total < _MOSTLY * explanation.span * len(explanation.accounted.gpus)
        or max(saves, default=0.0) >= _LITTLE * total
    ):
        return []
    late: dict[tuple[str, str], float] = {}
    for row in idle:
        late[row.cause, without_context(row.by)] = (
            late.get((row.cause, without_context(row.by)), 0.0) + row.seconds
        )
    rows = sorted(late.items(), key=lambda item: (-item[1], item[0]))[:_PARTS_SHOWN]
    who_was_late = (
        f"{'the host' if cause == HOST else cause_word(cause)}: {cut(by, _BY)} "
        f"({seconds_words(seconds)})"
        for (cause, by), seconds in rows
        if seconds >= _SMALL * total
    )
    return [
        "No change that was tried saves a tenth of the idle time. "
        f"Late was {'; '.join(who_was_late)}."
    ]


def gpus_shown(explanation: Explanation) -> list[int]:
    """Returns the GPUs of which each row is shown."""
    idle = dict.fromkeys(explanation.accounted.gpus, 0.0)
    for row in explanation.account:
        idle[row.gpu] += row.seconds * (row.cause not in BUSY)
    return sorted(sorted(idle, key=lambda gpu: (-idle[gpu], gpu))[:_GPUS_SHOWN])


def gpu_words(explanation: Explanation, gpu: int) -> list[str]:
    """Returns the heading of a GPU, if there are several; else nothing."""
    gpu_count = len(explanation.accounted.gpus)
    name = who(explanation, gpu)
    return [f"{name[0].upper()}{name[1:]} of {gpu_count}:"] if gpu_count > 1 else []


def account_table(explanation: Explanation, gpu: int, max_rows: int = ROWS_SHOWN) -> Table:
    """Returns a table with a row per cause and, below it, what it is by."""
    rows = [row for row in explanation.account if row.gpu == gpu]
    accounted, span = explanation.accounted, explanation.span
    per_step = {} if accounted.steps.run_ahead else accounted.per_step()
    causes: dict[str, list[AccountRow]] = {}
    for row in rows:
        causes.setdefault(row.cause, []).append(row)
    lines: list[tuple[str, ...]] = []
    hidden = 0
    # What kernels leave is what can be gained most easily, so it comes first, if it is not small.
    totals = {cause: sum(row.seconds for row in cause_rows) for cause, cause_rows in causes.items()}
    ranks = {cause: (totals[cause] < _SMALL * span, cause == "kernel") for cause in causes}
    for cause in sorted(causes, key=lambda cause: (*ranks[cause], -totals[cause])):
        cause_rows = causes[cause]
        shown = [row for row in cause_rows[:max_rows] if row.seconds >= _MIN_SHARE * span]
        told_rows = [(totals[cause], cause_word(cause), _per_step(per_step.get((gpu, cause))))]
        told_rows += [
            (seconds, f"  {_ALL}{cut(by, _BY)}", "")
            for by, seconds in _annotation_sums(cause_rows, span)
        ]
        names = _names([row.by for row in shown])
        told_rows += [
            (row.seconds, f"  {name}", "") for row, name in zip(shown, names, strict=True)
        ]
        for seconds, name, steps in told_rows:
            share = percent_words(round(1e9 * seconds), round(1e9 * span))
            lines.append((seconds_words(seconds), share, name, steps))
        hidden += len(cause_rows) - len(shown)
    more = f"and {counted(hidden, 'smaller part')} of these" if hidden else ""
    headings = ("time", "%", "where it went")
    if not any(line[3] for line in lines):
        return table_of(headings, [line[:3] for line in lines], (2,), more)
    per = "step" if explanation.accounted.steps.names else "repetition"
    return table_of((*headings, f"per {per} (least to most)"), lines, (2,), more)


def _annotation_sums(rows: Iterable[AccountRow], span: float) -> list[tuple[str, float]]:
    """Returns the annotations and waits that the host was late in or after, in more than one row.

    With each the seconds of its rows.
    """
    seconds_by_text: dict[str, list[float]] = {}
    for row in rows:
        rest, is_after, wait = row.by.rpartition(AFTER)
        _, is_within, scope = (rest if is_after else row.by).rpartition(WITHIN)
        if is_after:
            seconds_by_text.setdefault(f"after {wait}", []).append(row.seconds)
        if is_within:
            seconds_by_text.setdefault(f"within {scope}", []).append(row.seconds)
    sums = [(text, sum(seconds)) for text, seconds in seconds_by_text.items() if len(seconds) > 1]
    return sorted((x for x in sums if x[1] >= _MIN_SHARE * span), key=lambda item: -item[1])


def _names(texts: Sequence[str]) -> list[str]:
    """Returns causes' names, cut so that different ones stay different; waits stay whole."""
    parts = [text.rpartition(AFTER) for text in texts]
    names = [first if is_after else last for first, is_after, last in parts]
    waits = [f"{AFTER}{last}" if is_after else "" for _, is_after, last in parts]
    return [f"{name}{wait}" for name, wait in zip(cut_apart(names, _BY), waits, strict=True)]


def _per_step(ns: np.typing.NDArray[np.int64] | None) -> str:
    """Returns the median of times per step, with the shortest and the longest, in words; empty:
    there are fewer than two."""
    if ns is None or len(ns) < 2:
        return ""
    median, shortest, longest = (float(x) / 1e9 for x in (np.median(ns), ns.min(), ns.max()))
    return f"{seconds_words(median)} ({seconds_words(shortest)} to {seconds_words(longest)})"


def model_words(explanation: Explanation) -> str:
    """Returns how well the model knows the program."""
    assert explanation.prediction is not None
    predicted, measured = explanation.prediction.makespan, explanation.makespan
    error_percent = 100 * (predicted / measured - 1) if measured else 0.0
    poor = sum(fitted < 0.5 for fitted in explanation.program.fitted)
    device = explanation.prediction.device.name
    words = (
        f"From the first kernel to the last: {seconds_words(measured)}, predicted on {device}: "
        f"{seconds_words(predicted)} ({error_percent:+.1f} %)."
    )
    if explanation.filled is not None and explanation.filled < _FULL:
        share = percent_words(round(1e6 * explanation.filled), 10**6)
        words += f" While kernels ran, their blocks filled {share} % of the GPU."
    if poor:
        words += f" The durations of blocks of {counted(poor, 'launch', 'launches')} are uncertain."
    return words


def no_gaps_words(explanation: Explanation) -> str:
    """That there is no long gap."""
    return f"No gap of a kernel and a cause costs {seconds_words(explanation.threshold)} or more."


def cause_word(cause: str) -> str:
    """A cause in a few words."""
    return _IN_A_WORD.get(cause, cause.replace("_", " "))


def gaps_table(explanation: Explanation, max_rows: int = GAPS_SHOWN) -> Table:
    """Returns a table with a row per kind of gap, kernel and cause."""
    groups = _groups(explanation.gaps)
    rows = []
    for group in groups[:max_rows]:
        longest = max(group, key=lambda gap: gap.cost)
        times = f"{len(group)}x, to " if len(group) > 1 else ""
        rows.append(
            (
                seconds_words(sum(gap.cost for gap in group)),
                f"{times}{seconds_words(longest.end - longest.begin)}",
                seconds_words(max(longest.begin - explanation.begin, 0)),
                _next(explanation, longest),
                gap_words(explanation, longest),
            )
        )
    headings = ("cost", "gaps", "longest at", "next", "why")
    more = more_of(sum(map(len, groups)), sum(map(len, groups[:max_rows])), "gap")
    return table_of(headings, rows, (3, 4), more, wrapped=(4,))


def _groups(gaps: Iterable[Gap]) -> list[list[Gap]]:
    """Returns groups of gaps that say the same, those that cost most first."""
    groups: dict[tuple[object, ...], list[Gap]] = {}
    for gap in gaps:
        groups.setdefault(gap.alike, []).append(gap)
    return sorted(groups.values(), key=lambda group: -sum(gap.cost for gap in group))


def gap_words(explanation: Explanation, gap: Gap) -> str:
    """Returns what a gap is, and its causes."""
    parts = [
        f"{seconds_words(cause.seconds)} {cause_words(explanation, gap, cause, True)}"
        for cause in gap.causes[:_PARTS_SHOWN]
    ]
    return f"{_KINDS[gap.kind]}: {'; '.join(parts)}"


def cause_words(explanation: Explanation, gap: Gap, cause: Cause, brief: bool = False) -> str:
    """Returns words for what a launch waited for, and unless brief what would avoid it."""
    if cause.by and cause.cause not in _OF_HOST:
        return f"{cause_word(cause.cause)}: {cut(cause.by, _BY)}"
    trace, launch = explanation.prediction, gap.launch
    specific_cause = cause.cause
    if trace is not None and trace.waits is not None and launch >= 0:
        specific_cause = waits_of(trace).specific_cause(specific_cause, launch, cause.behind)
    words = _OF_HOST.get(cause.cause) or CAUSE_WORDS.get(specific_cause, specific_cause)
    if brief:
        words = words.partition(" (")[0]
    return words.format(
        who=behind_words(explanation.program.sequence, cause.behind),
        by=cut(cause.by, _BY) or NOTHING,
        when=seconds_words(max(gap.end - cause.seconds - explanation.begin, 0)),
        queue=None if trace is None or launch < 0 else trace[launch].hardware_queue,
        unit="SM" if trace is None else configured_unit(trace.device),
    )


def changes_table(explanation: Explanation, max_rows: int = CHANGES_SHOWN) -> Table:
    """Returns a table with a row per change."""
    worth = changes_worth_it(explanation)
    rows = [
        (
            cut(change.what, _CHANGE),
            seconds_words(change.saves),
            percent_words(round(1e9 * change.saves), round(1e9 * explanation.span)),
            change.condition,
        )
        for change in worth[:max_rows]
    ]
    more = more_of(len(worth), len(rows), "change")
    return table_of(("change", "saves", "%", "only"), rows, (0, 3), more, wrapped=(0, 3))


def _next(explanation: Explanation, gap: Gap) -> str:
    sequence = explanation.program.sequence
    name = numbered(sequence, gap.launch) if gap.launch >= 0 else cut(gap.name, _NAME)
    return f"{who(explanation, gap.gpu)}: {name}" if len(explanation.accounted.gpus) > 1 else name


def explanation_html(explanation: Explanation) -> str:
    """Returns HTML: where the time went, the gaps, and what would shorten the program."""
    tiles = [(seconds_words(explanation.span), "measured")]
    first_lines = (*explanation.notes, *unrecorded_words(explanation), *late_words(explanation))
    notes = [note_html(line) for line in first_lines]
    drawn = []
    if explanation.prediction is not None:
        tiles.append((seconds_words(explanation.prediction.makespan), "predicted"))
        notes.insert(0, note_html(model_words(explanation)))
        notes.append(assumed_html(explanation.assumed_rules, explanation.prediction.device))
        drawn = explained_html(explanation)
    tiles += [
        (seconds_words(sum(explanation.idle.values())), "idle"),
        (f"{len(explanation.gaps):,}", "gaps"),
    ]
    accounts = []
    for gpu in gpus_shown(explanation):
        title = " ".join(["Where the time went", *gpu_words(explanation, gpu)])
        accounts.append(table_html(account_table(explanation, gpu, _SHOWN), title))
    parts = [
        tiles_html(*tiles),
        *notes,
        bars_html(
            (cause_word(why), idle, seconds_words(idle)) for why, idle in explanation.idle.items()
        ),
        *ranks_html(explanation, cause_word),
        *accounts,
        *drawn,
        table_html(changes_table(explanation, _SHOWN), "What would shorten it")
        if changes_worth_it(explanation)
        else note_html(
            "No change was tried."
            if explanation.notes
            else f"Nothing worth changing: no change that was tried saves {100 * WORTH:g} %."
        ),
        table_html(gaps_table(explanation, _SHOWN), "Gaps")
        if explanation.gaps
        else note_html(no_gaps_words(explanation)),
    ]
    assumed = assumed_words(explanation)
    if assumed:
        folded = text_html(assumed, style="note")
        parts.append(folded_html("What the profile does not say", folded))
    return card(explanation_short(explanation), *parts)


def explained_html(explanation: Explanation) -> list[Markup]:
    """Returns HTML: profile and prediction on one scale, and the gaps by their causes."""
    assert explanation.prediction is not None  # which is drawn
    measured, predicted = (
        spans_measured(explanation.program),
        spans_by_stream(explanation.prediction),
    )
    length = max(measured.length_ns, predicted.length_ns)
    measured, predicted = (
        dataclasses.replace(spans, length_ns=length, titles=measured.titles)
        for spans in (measured, predicted)
    )
    names = program_names(explanation.program)
    parts = [
        legend_html(explanation.program.sequence.launches),
        folded_html("As measured", streams_timeline(measured, names, "as measured"), is_open=True),
    ]
    if explanation.gaps:
        colours = _colours_of_causes(explanation.gaps)
        drawn = explanation.gaps[:_DRAWN]
        spans = _gap_spans(drawn, measured)
        of_gaps = Names(
            [colours[_main(gap)] for gap in drawn],
            lambda launch: cause_word(_main(drawn[launch])),
            lambda launch: gap_words(explanation, drawn[launch]),
        )
        keys = ((colour, cause_word(cause)) for cause, colour in colours.items())
        parts.append(
            folded_html(
                "Gaps, by what most of each is for",
                keys_html(keys),
                streams_timeline(spans, of_gaps, "gaps as measured"),
                is_open=True,
            )
        )
    drawn_too = streams_timeline(predicted, names, "as predicted")
    return [*parts, folded_html("As predicted", drawn_too, is_open=True)]


def _main(gap: Gap) -> str:
    return gap.causes[0].cause if gap.causes else gap.kind


def _colours_of_causes(gaps: Iterable[Gap]) -> dict[str, str]:
    """Returns a colour per cause, those that cost most first."""
    costs: dict[str, float] = {}
    for gap in gaps:
        costs[_main(gap)] = costs.get(_main(gap), 0.0) + gap.cost
    ordered = sorted(costs, key=lambda cause: -costs[cause])
    return {
        cause: _CAUSES[index] if index < len(_CAUSES) else TRANSFER_COLOUR
        for index, cause in enumerate(ordered)
    }


def _gap_spans(gaps: tuple[Gap, ...], like: Spans) -> Spans:
    """Returns a row per kind of gap, on the time axis of other spans."""
    kinds = [kind for kind in _GAP_ROWS if any(gap.kind == kind for gap in gaps)]
    spans = spans_of(
        tuple(_GAP_ROWS[kind] for kind in kinds),
        np.array([kinds.index(gap.kind) for gap in gaps], np.int64),
        np.arange(len(gaps)),
        np.array([round(gap.begin * 1e9) for gap in gaps], np.int64),
        np.array([round(gap.end * 1e9) for gap in gaps], np.int64),
        "gaps",
    )
    return dataclasses.replace(spans, zero_ns=like.zero_ns, length_ns=like.length_ns)


def explanation_columns(explanation: Explanation) -> dict[str, Any]:
    """Returns columns with a row per cause of each gap, the most costly gap first."""
    launches = explanation.program.sequence.launches
    rows = [
        (gap_index, gap, cause)
        for gap_index, gap in enumerate(explanation.gaps)
        for cause in gap.causes
    ]
    gaps, causes = [gap for _, gap, _ in rows], [cause for _, _, cause in rows]
    return {
        "gap": [gap_index for gap_index, _, _ in rows],
        **columns_of(gaps, "kind gpu launch"),
        "name": [launches[gap.launch].name if gap.launch >= 0 else gap.name for gap in gaps],
        **columns_of(gaps, "begin end cost"),
        "at": [max(gap.begin - explanation.begin, 0.0) for gap in gaps],
        **columns_of(causes, "cause seconds behind by"),
    }


def explanation_data(explanation: Explanation) -> dict[str, Any]:
    """Returns JSON data: the account, the gaps with their causes, and the changes."""
    launches = explanation.program.sequence.launches
    gaps = [
        {
            **fields(gap, "kind gpu launch"),
            "name": launches[gap.launch].name if gap.launch >= 0 else gap.name,
            **fields(gap, "begin end cost"),
            "causes": [
                {**plain(cause), "words": cause_words(explanation, gap, cause)}
                for cause in gap.causes
            ],
        }
        for gap in explanation.gaps
    ]
    prediction = explanation.prediction
    return {
        "device": None if prediction is None else prediction.device.name,
        **fields(explanation, "begin span"),
        "account": [row._asdict() for row in explanation.account],
        "makespan": explanation.makespan,
        "predicted": None if prediction is None else prediction.makespan,
        **fields(explanation, "threshold filled idle"),
        "gaps": gaps,
        "ranks": [rank._asdict() for rank in explanation.program.ranks],
        "roots": roots_data(explanation),
        "collectives": collectives_of(explanation.accounted),
        "exposed": [row._asdict() for row in explanation.exposed],
        "changes": [
            fields(change, "change=what saves is_bound condition makespan events=sequence")
            for change in explanation.changes
        ],
        **fields(explanation, "fitted=program.fitted notes"),
        "assumed": assumed_words(explanation),
        "assumed_rules": list(explanation.assumed_rules),
    }
