"""What the strategies draw can run, and shrinks to what a person would have written."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from helpers import gpu
from tbsched.campaigns import SequenceOptions
from tbsched.hardware.spec import device, devices
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.strategies import launches, sequences

REPEATABLE = settings(deadline=None, derandomize=True, max_examples=150)
EVERYTHING = SequenceOptions(
    carveouts=(100, None, 0, 50),
    local_memory=(0, 4096),
    clusters=(1, 2, 4, 8, 16),
    priorities=(0, -1),
    min_registers=1,
)
ODD = {
    "one-sm": gpu(1),
    "few-registers": gpu(2, registers_per_sm=4 * 512),
    "few-warps": gpu(3, warps_per_sm=4, threads_per_block=1024),
    "no-shared-memory": gpu(
        2,
        shared_memory_per_block=0,
        shared_memory_reserve=0,
        shared_memory_configurations=(0,),
    ),
}
SPECS = {name: device(name) for name in devices()} | ODD
SMALLEST = Launch(1, 32, 32, carveout=100)


@pytest.mark.parametrize("options", [SequenceOptions(), EVERYTHING], ids=["default", "everything"])
@pytest.mark.parametrize("name", SPECS)
def test_every_drawn_sequence_can_run(name: str, options: SequenceOptions) -> None:
    spec = SPECS[name]

    @REPEATABLE
    @given(sequences(spec, options), launches(spec, options))
    def holds(sequence: Sequence, launch: Launch) -> None:
        spec.check(sequence)
        spec.check(Sequence([launch]))
        assert 1 <= len(sequence.launches) <= options.max_launches

    holds()


def test_without_releases_none_is_drawn() -> None:
    @REPEATABLE
    @given(sequences("h200", SequenceOptions(releases=False)))
    def holds(sequence: Sequence) -> None:
        assert len(sequence) == len(sequence.launches)

    holds()


def test_the_number_of_launches_is_bounded_on_both_sides() -> None:
    @REPEATABLE
    @given(sequences("h200", SequenceOptions(min_launches=3, max_launches=4)))
    def holds(sequence: Sequence) -> None:
        assert 3 <= len(sequence.launches) <= 4

    holds()


@pytest.mark.parametrize("kind", ["blocks", "threads", "registers", "shared_memory"])
def test_boundaries_are_drawn_often(kind: str) -> None:
    spec = device("h200")
    wanted = {
        "blocks": lambda launch: launch.blocks % 132 in (0, 1, 131),
        "threads": lambda launch: launch.threads % 128 in (0, 1, 127),
        "registers": lambda launch: launch.registers % 8 == 0,
        "shared_memory": lambda launch: 228 * 1024 % (launch.shared_memory + 1024) < 33 * 128,
    }[kind]
    seen: list[bool] = []

    @settings(REPEATABLE, max_examples=500)
    @given(launches(spec))
    def draw(launch: Launch) -> None:
        seen.append(wanted(launch))

    draw()
    assert sum(seen) > 0.1 * len(seen)


def smallest(holds: object, options: SequenceOptions | None = None) -> Sequence:
    found: Sequence = find(
        sequences("h200", options),
        holds,  # type: ignore[arg-type]
        settings=settings(deadline=None, database=None, derandomize=True, max_examples=3000),
    )
    return found


def test_any_sequence_shrinks_to_one_block_of_one_warp() -> None:
    assert smallest(lambda sequence: True) == Sequence([SMALLEST])


def test_three_launches_shrink_to_three_smallest_ones_without_releases() -> None:
    assert smallest(lambda sequence: len(sequence.launches) >= 3) == Sequence([SMALLEST] * 3)


def test_a_release_shrinks_to_one_release_between_two_launches() -> None:
    found = smallest(lambda sequence: any(isinstance(event, Release) for event in sequence))
    assert found == Sequence([SMALLEST, Release(0), SMALLEST])


@pytest.mark.parametrize(
    ("field", "least", "expected"),
    [
        ("blocks", 132, 132),
        ("blocks", 133, 133),
        ("threads", 1024, 1024),
        ("threads", 129, 129),
        ("registers", 255, 255),
        ("shared_memory", 227 * 1024, 227 * 1024),
    ],
)
def test_one_large_number_shrinks_alone(field: str, least: int, expected: int) -> None:
    found = smallest(
        lambda sequence: any(getattr(launch, field) >= least for launch in sequence.launches)
    )
    (launch,) = found.launches
    others = {"blocks": 1, "threads": 32, "registers": 32, "shared_memory": 0}
    assert {name: getattr(launch, name) for name in others} == {**others, field: expected}


def test_options_shrink_to_their_first_value() -> None:
    (launch,) = smallest(lambda sequence: True, EVERYTHING).launches
    assert (launch.carveout, launch.local_memory, launch.cluster, launch.priority) == (100, 0, 1, 0)


@REPEATABLE
@given(st.data())
def test_clusters_divide_the_blocks_and_fit_the_device(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(("h200", "rtx3090")))
    launch = data.draw(launches(name, EVERYTHING))
    assert launch.blocks % launch.cluster == 0
    assert launch.cluster <= device(name).max_cluster
