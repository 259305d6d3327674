"""Which waiting launch is considered first, by elimination."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, by_elimination
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, KnownValues
from tbsched.calibration.probes.clusters import CHOICES
from tbsched.calibration.probes.preference import whole_sm
from tbsched.prediction.predict import launch_orders
from tbsched.program.sequence import Launch, Sequence

# Levels of priority: the most that are asked for; how many are drawn, and how many where none is
# refused: no GPU has fewer.
_MAX_LEVELS, _DRAWN_LEVELS, _SURE_LEVELS = 64, 6, 2


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Eliminates launch orders that contradict which launches of several priorities enter a nearly
    full GPU, and returns findings from those that remain."""
    # Recorded runtimes refuse priorities; models and tb.observe clamp them, as CUDA does.
    levels = lab.largest(
        lambda level: lab.accepts(replace(small(), priority=1 - level), models_know=False),
        1,
        _MAX_LEVELS,
    )
    known.notes["levels"] = levels if levels < _MAX_LEVELS else None
    levels = min(levels, _DRAWN_LEVELS) if levels < _MAX_LEVELS else _SURE_LEVELS
    spec = draft(known)
    choices: Choices = {
        "launch_order": tuple(row.name for row in launch_orders()),
    }

    # Clusters that wait do not let others have the TPCs that are in no GPC.
    whole_launch = whole_sm(known)
    waiting = [whole_launch, small(2)]
    if spec.policy == "hopper" and not known.unknown(CHOICES):
        known.premises += tuple(CHOICES)
        waiting += [replace(whole_launch, blocks=n, cluster=n) for n in known.notes["clusters"][:3]]

    def drawn(rng: np.random.Generator) -> Sequence:
        """Returns a random sequence in which several launches wait for a full GPU."""
        free = int(rng.integers(0, 3))
        waits = [
            replace(_drawn(rng, waiting), priority=-int(rng.integers(levels)))
            for _ in range(int(rng.integers(2, 5)))
        ]
        return Sequence([whole_sm(known, max(lab.sms - free, 1)), *waits])

    return by_elimination(lab, known, spec, choices, drawn, whole_gpu.VIEW_OF_WAITS, seed=5)


def _drawn(rng: np.random.Generator, launches: list[Launch]) -> Launch:
    launch = launches[int(rng.integers(len(launches)))]
    return replace(launch, blocks=launch.cluster * int(rng.integers(1, 5)))
