"""Forced evenness against the predictor: never claimed in vain, and never without need denied."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import BALANCING, examples
from tbsched.advice.evenness import forced_even
from tbsched.advice.launch_configs import Kernel, launch_configs
from tbsched.campaigns import SequenceOptions
from tbsched.hardware.catalogue import ablations, device, devices
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies, predict
from tbsched.program.sequence import Launch, Sequence
from tbsched.strategies import launches
from tbsched.traces.placement import Placement

REPEATABLE = settings(deadline=None, derandomize=True)
EVERYTHING = SequenceOptions(carveouts=(100, None, 0, 50), local_memory=(0, 4096), min_registers=1)
POLICIES = [row.name for row in policies()]
NAMES = [*devices(), *(f"h200-{ablation}" for ablation in ablations())]


@functools.cache
def with_policy(name: str, policy: str) -> DeviceSpec:
    return dataclasses.replace(device(name), policy=policy)


# Hypothesis examines each new strategy, which takes longer than drawing from it.
@functools.cache
def any_launch(name: str) -> st.SearchStrategy[Launch]:
    return launches(device(name), EVERYTHING)


def around_a_wave(data: st.DataObject, spec: DeviceSpec, kernel: Launch) -> Launch:
    """The kernel with a number of blocks at or beside a boundary of the rule."""
    each = forced_even(spec, dataclasses.replace(kernel, blocks=1)).blocks_per_sm
    wave = each * spec.sms
    near = {1, 2, spec.sms - 1, spec.sms, spec.sms + 1, wave - 2, wave - 1, wave, wave + 1}
    some = sorted(blocks for blocks in near if blocks > 0)
    place = data.draw(st.integers(0, 2 * len(some) - 1))
    blocks = some[place] if place < len(some) else data.draw(st.integers(1, wave))
    return dataclasses.replace(kernel, blocks=blocks)


def placed(spec: DeviceSpec, launch: Launch) -> Placement:
    return predict(Sequence([launch]), spec)[0]


def is_even(spec: DeviceSpec, launch: Launch) -> bool:
    return are_even(placed(spec, launch), spec)


def are_even(found: Placement, spec: DeviceSpec) -> bool:
    return int(np.ptp(found.occupancy(spec.sms))) <= 1


@pytest.mark.parametrize("name", NAMES)
@settings(REPEATABLE, max_examples=examples(25))
@given(data=st.data())
def test_what_is_forced_to_be_even_is_even_and_whole_under_every_policy(
    name: str, data: st.DataObject
) -> None:
    kernel = data.draw(any_launch(name))
    for policy in POLICIES:
        spec = with_policy(name, policy)
        launch = around_a_wave(data, spec, kernel)
        if forced_even(spec, launch):
            found = placed(spec, launch)
            assert are_even(found, spec)
            assert found.placed == launch.blocks


@pytest.mark.parametrize("name", NAMES)
@settings(REPEATABLE, max_examples=examples(50))
@given(data=st.data())
def test_what_is_not_forced_is_uneven_under_first_fit_or_more_than_a_wave(
    name: str, data: st.DataObject
) -> None:
    spec = with_policy(name, "first_fit")
    launch = around_a_wave(data, spec, data.draw(any_launch(name)))
    found = forced_even(spec, launch)
    if launch.blocks <= found.blocks_per_sm * spec.sms:
        assert found.forced == is_even(spec, launch)
    else:
        assert not found.forced
        assert placed(spec, launch).placed == found.blocks_per_sm * spec.sms


@pytest.mark.parametrize("policy", BALANCING)
@pytest.mark.parametrize("name", devices())
@settings(REPEATABLE, max_examples=examples(25))
@given(data=st.data())
def test_balancing_policies_spread_every_launch_evenly_on_an_idle_gpu(
    name: str, policy: str, data: st.DataObject
) -> None:
    spec = with_policy(name, policy)
    assert is_even(spec, around_a_wave(data, spec, data.draw(any_launch(name))))


def test_clusters_that_are_forced_to_be_even_are_even() -> None:
    h200 = device("h200")
    options = dataclasses.replace(EVERYTHING, clusters=(2, 4, 8, 16))
    claimed = []

    @settings(REPEATABLE, max_examples=300)
    @given(launches(h200, options))
    def holds(launch: Launch) -> None:
        if launch.cluster > 1 and forced_even(h200, launch):
            claimed.append(launch)
            assert is_even(h200, launch)

    holds()
    assert claimed


@pytest.mark.parametrize("name", devices())
def test_accepted_block_sizes_keep_every_promise(name: str) -> None:
    spec = device(name)
    kernels = st.builds(
        Kernel,
        st.one_of(
            st.integers(1, 2048 * spec.sms),
            st.integers(1, 8).map(lambda blocks: blocks * 256 * spec.sms),
        ),
        st.integers(16, 128),
        shared_memory=st.sampled_from([0, 1024, 20_000]),
        shared_memory_per_thread=st.sampled_from([0, 4, 16]),
        carveout=st.sampled_from([None, 100]),
    )
    accepted = []

    @settings(REPEATABLE, max_examples=examples(25))
    @given(kernels, st.booleans())
    def holds(kernel: Kernel, trust_policy: bool) -> None:
        for row in launch_configs(spec, kernel, trust_policy).accepted:
            accepted.append(row)
            assert row.launch.blocks * row.launch.threads >= kernel.threads
            found = placed(spec, row.launch)
            assert are_even(found, spec)
            assert found.placed == row.launch.blocks
            per_block = -(-row.launch.threads // 32)
            warps = found.occupancy(spec.sms) * per_block
            assert not (warps % spec.processing_blocks).any()
            assert trust_policy or forced_even(spec, row.launch)

    holds()
    assert accepted
