"""Why a program of a profile took so long, as what JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tbsched.advice.explain.explanation import Explanation
from tbsched.program.sequence import events_to_data
from tbsched.show.text.explanations import cause_words


def explanation_data(found: Explanation) -> dict[str, Any]:
    """The gaps with their causes, and the changes."""
    launches = found.program.sequence.launches
    gaps = [
        {
            "kind": gap.kind,
            "launch": gap.launch,
            "name": launches[gap.launch].name,
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
            "condition": change.condition,
            "makespan": change.makespan,
            "events": events_to_data(change.sequence),
        }
        for change in found.changes
    ]
    return {
        "device": found.prediction.device.name,
        "makespan": found.makespan,
        "predicted": found.prediction.makespan,
        "threshold": found.threshold,
        "idle": found.idle,
        "gaps": gaps,
        "changes": changes,
        "fitted": list(found.program.fitted),
        "assumed": list(found.program.assumed),
    }
