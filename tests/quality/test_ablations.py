"""Every predictor that lacks one mechanism is told apart, and shrunk to a known minimum.

The minima are launches and events of the smallest sequence that a campaign is known to find. A
larger one means that the strategies or the shrinking have become worse; a smaller one is welcome.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tbsched.campaigns import SequenceOptions, fuzz
from tbsched.hardware.catalogue import ablations

PLAIN = SequenceOptions()
DRIVERS_CHOICE = SequenceOptions(carveouts=(None, 100))
CARVEOUTS = SequenceOptions(carveouts=(None, 0, 50, 100))
CLUSTERS = SequenceOptions(clusters=(1, 2, 3, 4, 8))
LOCAL_MEMORY = SequenceOptions(local_memory=(0, 4096))
SEED = 1


@dataclass(frozen=True)
class Known:
    """A wrong predictor, and the launches and events that show it."""

    base: str
    ablation: str
    launches: int
    events: int
    options: SequenceOptions = PLAIN
    past_refusal: bool = False

    def __str__(self) -> str:
        return f"{self.base}-{self.ablation}"


KNOWN = [
    Known("rtx3090", "no-warp-skip", 3, 3),
    Known("rtx3090", "free-warps", 2, 2),
    Known("rtx3090", "no-processing-blocks", 1, 1),
    Known("rtx3090", "contiguous-registers", 3, 4),
    Known("rtx3090", "pooled-shared-memory", 3, 4),
    Known("rtx3090", "no-configuration", 2, 2, DRIVERS_CHOICE),
    Known("rtx3090", "no-local-memory", 2, 2, LOCAL_MEMORY),
    Known("rtx3090", "no-head-of-line", 2, 2, past_refusal=True),
    Known("h200", "no-warp-skip", 3, 4),
    Known("h200", "free-warps", 2, 2),
    Known("h200", "no-processing-blocks", 1, 1),
    Known("h200", "contiguous-registers", 3, 4),
    Known("h200", "contiguous-shared-memory", 3, 4),
    Known("h200", "pooled-shared-memory", 4, 5),
    Known("h200", "configuration-per-tpc", 2, 2, CARVEOUTS),
    Known("h200", "no-configuration-headroom", 2, 2, CARVEOUTS),
    Known("h200", "no-configuration", 2, 2, DRIVERS_CHOICE),
    Known("h200", "no-local-memory", 2, 2, LOCAL_MEMORY),
    Known("h200", "paper-order", 1, 1),
    Known("h200", "no-cluster-slots", 2, 2, CLUSTERS),
    Known("h200", "clusters-anywhere", 3, 3, CLUSTERS),
    Known("h200", "clusters-in-halves", 2, 2, CLUSTERS),
    Known("h200", "no-head-of-line", 2, 2, past_refusal=True),
]
POLICIES = [("round_robin", 1), ("first_fit", 1), ("most_room", 1)]


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_a_missing_mechanism_is_found_and_shrunk(known: Known) -> None:
    report = fuzz(
        known.base,
        str(known),
        seed=SEED,
        max_examples=6000,
        options=known.options,
        limits=known.base,
        past_refusal=known.past_refusal,
        progress=False,
    )
    (found,) = report.counterexamples
    assert found.shrunk
    assert len(found.sequence.launches) <= known.launches, found.sequence
    assert len(found.sequence) <= known.events, found.sequence


def test_a_local_minimum_of_four_launches_is_left() -> None:
    report = fuzz("h200", "h200-no-warp-skip", seed=1795301299, draw="native", progress=False)
    (found,) = report.counterexamples
    assert len(found.sequence.launches) == 3, found.sequence


@pytest.mark.parametrize(("policy", "launches"), POLICIES)
@pytest.mark.parametrize("base", ["h200", "rtx3090"])
def test_a_simpler_policy_is_found_and_shrunk(base: str, policy: str, launches: int) -> None:
    report = fuzz(base, base, policy, seed=SEED, progress=False)
    (found,) = report.counterexamples
    assert len(found.sequence.launches) <= launches, found.sequence


def test_every_ablation_has_a_row() -> None:
    assert {known.ablation for known in KNOWN} == set(ablations())


@pytest.mark.parametrize(
    ("base", "options", "past_refusal"),
    dict.fromkeys((known.base, known.options, known.past_refusal) for known in KNOWN),
)
def test_the_complete_model_disagrees_on_nothing(
    base: str, options: SequenceOptions, past_refusal: bool
) -> None:
    report = fuzz(
        base, base, seed=SEED, max_examples=100, options=options, past_refusal=past_refusal,
        progress=False,
    )  # fmt: skip
    assert not report.disagreements
