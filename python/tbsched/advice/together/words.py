"""Why launches are resident together, or not, in words."""

from __future__ import annotations

from tbsched.advice.together.problem import Decision, Problem, Stranding
from tbsched.counting import counted

# What may decide what nobody knows.
_HELP = {
    "solver": "pip install ortools adds a solver that decides most of these",
    "seconds": "more seconds may decide it",
    "plays": "more plays may decide it",
    "": "neither more seconds nor more plays would decide it: treat it as unsafe",
}


def argument(problem: Problem, found: Decision, waiting: int) -> str:
    """Returns the reason, with its numbers."""
    if found.stranding is not None:
        return _stranded(problem, found.stranding, waiting)
    if found.safe is None and found.why:
        return found.why
    if found.safe is None:
        words = f"neither a proof nor a witness in {counted(found.plays, 'prediction')}"
        return f"{words}; {_HELP[found.wanted]}"
    if found.proof == "full_sms":
        return _full_sms(problem, found)
    return (
        f"every history was played or ruled out, in {found.plays:,} "
        "predictions: no block waits for ever"
    )


def _full_sms(problem: Problem, found: Decision) -> str:
    if all(row.most + 1e-6 < 1 for row in found.full_sms):
        return "all blocks together fill no SM"
    tightest = max(found.full_sms, key=lambda row: row.most / row.needed if row.needed else 0.0)
    name = problem.called(tightest.launch)
    fewer = f"{int(tightest.most + 1e-6):,} at most"
    return (
        f"before a block of {name} finds no room, {tightest.needed:,} SMs must be full for it; all "
        f"other blocks together fill {fewer}, whatever the order"
    )


def _stranded(problem: Problem, stranding: Stranding, waiting: int) -> str:
    words = f"{problem.called(stranding.stranded)} never happens"
    if stranding.stranded < len(problem.launches):
        launch = problem.launches[stranding.stranded]
        name = problem.called(stranding.stranded)
        words = f"{waiting:,} of {counted(launch.blocks, 'block')} of {name} never start"
    words += f" ({stranding.cause})"
    if stranding.behind is not None:
        words += f", behind {problem.called(stranding.behind)}"
    return words
