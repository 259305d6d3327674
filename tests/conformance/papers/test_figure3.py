"""Round robin against the model of a Xavier, on the configurations of Figure 3 of RTAS 2020."""

from __future__ import annotations

import itertools

import pytest

from conformance.papers.figure3 import STREAMS, bar, configurations, figure
from helpers import recorded
from tbsched.hardware.catalogue import device


def test_round_robin_is_wrong_the_more_often_the_more_streams_there_are() -> None:
    wrong = [found.round_robin for found in figure("xavier")]
    assert all(less < more for less, more in itertools.pairwise(wrong))
    assert sum(found.configurations for found in figure("xavier")) == 7000


def test_round_robin_is_wrong_in_at_least_the_96_per_cent_that_the_paper_finds() -> None:
    worst = max(found.round_robin / found.configurations for found in figure("xavier"))
    assert 0.96 <= worst < 1


def test_two_streams_mislead_round_robin_in_a_fifth_of_configurations() -> None:
    assert figure("xavier")[0].round_robin == pytest.approx(200, abs=40)


def test_more_sms_mislead_round_robin_less_often() -> None:
    for few, many in zip(figure("xavier")[1:], figure("pegasus")[1:], strict=True):
        assert many.round_robin < few.round_robin


def test_configurations_are_within_the_paper_s_limits_and_reach_them() -> None:
    launches = [kernel for drawn in configurations(8) for kernel in drawn.launches]
    assert {kernel.blocks for kernel in launches} == {1, 2, 3, 4}
    assert min(kernel.threads for kernel in launches) == 1
    assert max(kernel.threads for kernel in launches) == 1024
    assert {len(drawn) for drawn in configurations(8)} == {8}


def test_an_h200_does_as_its_model_says_and_misleads_round_robin_as_often() -> None:
    traces = recorded("figure3")
    seen = {n: [trace for trace in traces if len(trace.sequence) == n] for n in STREAMS}
    bars = [bar(streams, some, device("h200")) for streams, some in seen.items()]
    assert [found.configurations for found in bars] == [400] * 7
    assert not any(found.model for found in bars)
    wrong = [found.round_robin / found.configurations for found in bars]
    assert all(less < more for less, more in itertools.pairwise(wrong))
    assert wrong[-1] == pytest.approx(0.935)
