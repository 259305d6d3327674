"""What a trace's further keys say, as fields: the keys in files stay as they are."""

from __future__ import annotations

import pytest

from tbsched.traces import annotations
from tbsched.traces.annotations import Origin, Shows

SHRUNK = Origin("h200", "hopper", "exact", 7, shrunk=True, found_as="ce-1")


def test_an_origin_is_read_as_it_was_written_beside_other_keys() -> None:
    written = SHRUNK.added_to({"mood": "good"})
    assert written == {
        "mood": "good",
        "predictor": "h200",
        "policy": "hopper",
        "level": "exact",
        "seed": 7,
        "shrunk": True,
        "from": "ce-1",
    }
    assert Origin.read(written) == SHRUNK


def test_what_was_not_shrunk_comes_from_nothing() -> None:
    found = Origin("h200", "hopper", "exact", 7, shrunk=False)
    assert "from" not in found.added_to({})
    assert Origin.read(found.added_to({})) == found


@pytest.mark.parametrize("extra", [{}, {"shrunk": None}, {"from": "ce-1"}])
def test_other_traces_have_no_origin(extra: dict[str, object]) -> None:
    assert Origin.read(extra) is None


def test_a_mechanism_may_have_no_ablation() -> None:
    keys = {"mechanism": "order", "ablation": "h200-paper-order", "policy": None}
    assert Shows.read(keys) == Shows("order", ("h200-paper-order", None))
    assert Shows.read({**keys, "ablation": None}) == Shows("order", None)


def test_an_observation_is_marked_unstable_with_a_reason() -> None:
    marked = annotations.marked_unstable({"mood": "good"}, "wavers")
    assert marked == {"mood": "good", "unstable": "wavers"}
    assert annotations.unstable_reason(marked) == "wavers"
    assert annotations.unstable_reason({}) is None


def test_times_of_launch_calls_are_kept() -> None:
    assert annotations.issued_ns(annotations.issued([0, 5])) == [0, 5]
    assert annotations.issued_ns({}) is None
