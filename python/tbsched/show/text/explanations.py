"""Why a program of a profile took so long, as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from tbsched.advice.change import Change
from tbsched.advice.explain.explanation import (
    HOST,
    LONG_CALL,
    ON_ITS_WAY,
    SYNCHRONIZE,
    UNEXPLAINED,
    Cause,
    Explanation,
    Gap,
)
from tbsched.show.layout.names import cut
from tbsched.show.text.tables import render, table_of
from tbsched.show.waits import CAUSE_WORDS
from tbsched.show.words import (
    configured_unit,
    counted,
    percent_words,
    seconds_words,
    transfer_name,
    transfer_words,
)

GAPS_SHOWN, CHANGES_SHOWN = 12, 12
_PARTS_SHOWN = 3
_NAME = 40  # letters
_KINDS = {
    "idle": "the GPU was idle",
    "stream": "none of the stream ran",
    "order": "it left SMs idle",
}
# Beyond the causes of launches on the GPU.
_OF_HOST = {
    HOST: "for the host, which had not launched it (calls without a pause, a CUDA graph or fewer "
    "kernels would let it start sooner)",
    SYNCHRONIZE: "for the host, which had waited for {who} before it launched it (without the "
    "synchronisation it would have been launched sooner)",
    LONG_CALL: "for the launch call of {who}, which took much longer than others (a kernel that "
    "was used before is loaded already)",
    ON_ITS_WAY: "on its way from the host to the GPU (launched sooner, it would have been there)",
    UNEXPLAINED: "not explained by scheduling: the model would have run it at {when}",
}
_IN_A_WORD = {
    HOST: "host not issuing",
    SYNCHRONIZE: "host waiting for the GPU",
    LONG_CALL: "long launch calls",
    ON_ITS_WAY: "launches on their way",
    UNEXPLAINED: "not explained",
}


def explanation_short(found: Explanation) -> str:
    """How long it took, how much of that the GPU was idle, and the best change."""
    launches = counted(len(found.prediction), "launch", "launches")
    words = f"{launches} in {seconds_words(found.makespan)}, {idle_words(found)}"
    return f"{words}, {counted(len(found.changes), 'change')} would help"


def idle_words(found: Explanation) -> str:
    """How long no kernel ran."""
    idle = sum(found.idle.values())
    share = percent_words(round(1e9 * idle), round(1e9 * found.makespan))
    return f"the GPU idle {seconds_words(idle)} of it ({share} %)"


def explanation_text(found: Explanation) -> str:
    """What kept the GPU idle, the gaps, and what would shorten the program."""
    parts = [explanation_short(found), model_words(found)]
    if found.idle:
        shares = (f"{seconds_words(x)} {cause_word(cause)}" for cause, x in found.idle.items())
        parts.append(f"Idle, by cause: {', '.join(shares)}.")
    changes, more = changes_table(found)
    parts += ["", render(changes), *more] if found.changes else []
    gaps, more = gaps_table(found)
    parts += ["", render(gaps), *more] if found.gaps else ["", no_gaps_words(found)]
    assumed = [f"- {sentence}" for sentence in found.program.assumed]
    parts += ["", "What the profile does not say:", *assumed] if assumed else []
    return "\n".join(parts)


def model_words(found: Explanation) -> str:
    """How well the model knows the program."""
    predicted, measured = found.prediction.makespan, found.makespan
    off = 100 * (predicted / measured - 1) if measured else 0.0
    poor = sum(fitted < 0.5 for fitted in found.program.fitted)
    words = f"Predicted: {seconds_words(predicted)} ({off:+.1f} %)."
    if poor:
        words += f" The durations of blocks of {counted(poor, 'launch', 'launches')} are uncertain."
    return words


def no_gaps_words(found: Explanation) -> str:
    """That there is nothing to explain."""
    return f"No gap costs more than {seconds_words(found.threshold)}."


def cause_word(cause: str) -> str:
    """A cause in a word or two."""
    return _IN_A_WORD.get(cause, cause.replace("_", " "))


def gaps_table(found: Explanation, most: int = GAPS_SHOWN) -> tuple[Table, list[str]]:
    """A row per gap; and how many are left out, in words."""
    start = int(found.program.measured["start_ns"].min()) / 1e9
    rows = [
        (
            seconds_words(max(gap.begin - start, 0)),
            seconds_words(gap.end - gap.begin),
            seconds_words(gap.cost),
            _named(found, gap.launch),
            gap_words(found, gap),
        )
        for gap in found.gaps[:most]
    ]
    left = len(found.gaps) - len(rows)
    table = table_of(("at", "gap", "cost", "next", "why"), rows, left=(3, 4))
    return table, [f"and {counted(left, 'gap')} more"] if left else []


def gap_words(found: Explanation, gap: Gap) -> str:
    """What a gap is, and its causes."""
    parts = [
        f"{seconds_words(cause.seconds)} {cause_words(found, gap, cause, True)}"
        for cause in gap.causes[:_PARTS_SHOWN]
    ]
    return f"{_KINDS[gap.kind]}: {'; '.join(parts)}"


def cause_words(found: Explanation, gap: Gap, cause: Cause, brief: bool = False) -> str:
    """What the launch at the end of a gap waited for, and unless brief what would avoid it."""
    words = _OF_HOST.get(cause.cause) or CAUSE_WORDS.get(cause.cause, cause.cause)
    if brief:
        words = words.partition(" (")[0]
    start = int(found.program.measured["start_ns"].min()) / 1e9
    return words.format(
        who=_who(found, cause.behind),
        when=seconds_words(max(gap.end - cause.seconds - start, 0)),
        queue=found.prediction[gap.launch].hardware_queue,
        unit=configured_unit(found.prediction.device),
    )


def changes_table(found: Explanation, most: int = CHANGES_SHOWN) -> tuple[Table, list[str]]:
    """A row per change; and how many are left out, in words."""
    shown = found.changes[:most]
    left = len(found.changes) - len(shown)
    return _table(found, shown), [f"and {counted(left, 'change')} more"] if left else []


def _table(found: Explanation, changes: Iterable[Change]) -> Table:
    given = found.prediction.makespan
    rows = [
        (
            change.what,
            seconds_words(change.makespan),
            percent_words(round(1e9 * (given - change.makespan)), round(1e9 * given)),
            change.condition,
        )
        for change in changes
    ]
    return table_of(("change", "predicted", "% less", "only"), rows, left=(0, 3))


def _who(found: Explanation, behind: int) -> str:
    if behind >= 0:
        return _named(found, behind)
    if behind == -1:
        return "other work"
    transfer = found.program.sequence.transfers[-2 - behind]
    return f"{transfer_name(-2 - behind, transfer)} ({transfer_words(transfer)})"


def _named(found: Explanation, launch: int) -> str:
    name = found.program.sequence.launches[launch].name
    return f"launch {launch} ({cut(name, _NAME)})" if name else f"launch {launch}"
