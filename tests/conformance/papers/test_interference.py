"""How far predictions of Figures 6 to 9 are off: what the page on the hierarchy paper says."""

from __future__ import annotations

import pytest

from conformance.papers.interference import GPUS, Point, points, with_a_limit


@pytest.fixture(scope="module", params=GPUS)
def found(request: pytest.FixtureRequest) -> list[Point]:
    return points(request.param)


def test_halves_of_a_block_are_predicted_a_quarter_too_low(found: list[Point]) -> None:
    errors = [point.error for point in found if point.figure == "6"]
    assert len(errors) == 3
    assert all(-0.27 < error < -0.15 for error in errors)
    assert all(point.predicted > 1 for point in found if point.figure == "6")


def test_copies_of_the_host_slow_nothing_in_either(found: list[Point]) -> None:
    (host,) = [[point for point in found if "the host" in point.case]]
    assert len(host) == 8
    assert all(point.predicted == 1 for point in host)
    assert all(abs(point.error) < 0.04 for point in host)


def test_memsets_slow_the_addition_as_much_as_predicted_where_it_is_long(
    found: list[Point],
) -> None:
    long = [p for p in found if p.case.startswith("memset") and not p.case.endswith(" 50 MB")]
    assert len(long) == 3
    assert all(abs(point.error) < 0.06 for point in long)
    slowdowns = [point.predicted for point in long]
    assert slowdowns == sorted(slowdowns, reverse=True)


def test_copies_within_the_gpu_are_predicted_too_low(found: list[Point]) -> None:
    copies = [point for point in found if point.case.startswith("copy in the GPU")]
    assert [-0.35 < point.error < 0 for point in copies] == [True] * 4


def test_victims_of_readers_are_predicted_too_low_in_each_gpc(found: list[Point]) -> None:
    """No resource of the model belongs to a GPC, so the prediction is the same for both."""
    figure9 = [point for point in found if point.figure == "9"]
    assert len(figure9) == 8
    elsewhere, here = figure9[::2], figure9[1::2]
    assert [a.predicted for a in elsewhere] == [b.predicted for b in here]
    assert all(1.02 < point.predicted < 1.12 for point in figure9)
    assert all(-0.68 < point.error < -0.10 for point in elsewhere)
    assert all(-0.75 < point.error < -0.27 for point in here)
    # Readers of one GPC slow what reads in another one, too.
    assert all(1.15 < a.measured < b.measured for a, b in zip(elsewhere, here, strict=True))


@pytest.mark.parametrize("gpu", GPUS)
def test_a_limit_of_a_gpc_alone_would_not_explain_figure_9(gpu: str) -> None:
    """Too low for who gathers, and too high for who follows pointers or reads DRAM."""
    reads, gathers, follows, far = with_a_limit(gpu)
    assert abs(reads.error) < 0.05
    assert gathers.error < -0.35
    assert follows.error > 0.15
    assert far.error > 0.25
