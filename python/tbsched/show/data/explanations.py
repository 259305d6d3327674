"""Why a program of a profile took so long, as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tbsched.advice.explain.explanation import Explanation
from tbsched.program.sequence import events_to_data
from tbsched.show.text.explanations import assumed_words, cause_words


def explanation_data(found: Explanation) -> dict[str, Any]:
    """The account, the gaps with their causes, and the changes."""
    launches = found.program.sequence.launches
    gaps = [
        {
            "kind": gap.kind,
            "gpu": gap.gpu,
            "launch": gap.launch,
            "name": launches[gap.launch].name if gap.launch >= 0 else gap.name,
            "begin": gap.begin,
            "end": gap.end,
            "cost": gap.cost,
            "causes": [
                {**asdict(cause), "words": cause_words(found, gap, cause)} for cause in gap.causes
            ],
        }
        for gap in found.gaps
    ]
    changes = [
        {
            "change": change.what,
            "saves": change.saves,
            "is_bound": change.is_bound,
            "condition": change.condition,
            "makespan": change.makespan,
            "events": events_to_data(change.sequence),
        }
        for change in found.changes
    ]
    prediction = found.prediction
    return {
        "device": None if prediction is None else prediction.device.name,
        "span": found.span,
        "account": [row._asdict() for row in found.account],
        "makespan": found.makespan,
        "predicted": None if prediction is None else prediction.makespan,
        "threshold": found.threshold,
        "filled": found.filled,
        "idle": found.idle,
        "gaps": gaps,
        "changes": changes,
        "fitted": list(found.program.fitted),
        "notes": list(found.notes),
        "assumed": assumed_words(found),
    }
