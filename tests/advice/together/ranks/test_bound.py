"""Launches that the bound lets pass are resident in the end, however other work came and went."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from tbsched.prediction.together.ended_work import always_fit, finds_room

GPUS = ["h200", "h100", "rtx3090", "h200-contiguous-registers", "h200-contiguous-shared-memory"]

# Hypothesis examines each new strategy, which takes longer than drawing from it.
sampled = functools.cache(st.sampled_from)
integers = functools.cache(st.integers)


@st.composite
def launches(draw: st.DrawFn, spec: tb.DeviceSpec, most: int, sizes: list[int]) -> tb.Launch:
    cluster = draw(sampled((1, 1, 1, 2, 4) if spec.max_cluster > 1 else (1,)))
    return tb.Launch(
        cluster * draw(integers(1, max(1, most // cluster))),
        draw(sampled((32, 64, 128, 256, 512, 1024))),
        draw(sampled((16, 32, 40, 64))),
        draw(sampled(tuple(sizes))),
        cluster=cluster,
    )


@pytest.mark.parametrize(("cluster", "most"), [(2, 132), (4, 120), (8, 120), (16, 112)])
def test_clusters_that_need_whole_sms_find_room_until_no_gpc_has_enough(
    cluster: int, most: int
) -> None:
    spec = tb.device("h200")
    other = tb.Launch(300, 256, 32, 16 << 10)
    large = tb.Launch(most, 512, 16, 200 << 10, cluster=cluster)
    assert finds_room([large], [other], spec, spec.policy)
    assert not finds_room([replace(large, blocks=most + cluster)], [other], spec, spec.policy)


def test_clusters_leave_tpcs_free_that_are_too_small_for_them() -> None:
    # Four TPCs belong to no GPC. They take clusters of 2 and single blocks, and none of 4.
    spec = tb.device("h200")
    staying = tb.Launch(236, 64, 32, cluster=4)
    other = tb.Launch(254, 1024, 16, 100 << 10, cluster=2)
    for cluster in (1, 2):
        last = replace(other, blocks=cluster, cluster=cluster)
        assert finds_room([staying, last], [other], spec, spec.policy)
        smaller = replace(staying, cluster=2)
        assert not finds_room([smaller, last], [other], spec, spec.policy)


def test_launch_finds_room_beside_one_that_is_spread_evenly() -> None:
    # Alone, the first launch has 3 or 4 blocks on each SM, which leave room for one of the second.
    spec = tb.device("h200")
    first, second = tb.Launch(460, 128, 64, 8 << 10, cluster=2), tb.Launch(66, 512, 64)
    other = tb.Launch(314, 1024, 16)
    assert finds_room([first, second], [other], spec, spec.policy, [[], [0]])
    assert not finds_room([first, second], [other], spec, spec.policy, [[0], [0]])
    large = replace(second, blocks=133)
    assert not finds_room([first, large], [other], spec, spec.policy, [[], [0]])


def test_one_block_that_ends_leaves_one_gap() -> None:
    # An SM holds one block of the other kernel at a time, and seven or eight of the launch.
    spec = tb.device("h200")
    launch, other = tb.Launch(1055, 256, 32, 16 << 10), tb.Launch(87, 544, 32, 200 << 10)
    assert finds_room([launch], [other], spec, spec.policy, [[0]])
    assert not finds_room([replace(launch, blocks=1057)], [other], spec, spec.policy, [[0]])


def test_each_block_that_ended_set_the_configuration_of_one_sm() -> None:
    # Blocks of the second launch do not enter an SM that `sets` configured: 44 SMs at most.
    spec = tb.device("h200")
    first, second = tb.Launch(114, 128, 16, cluster=2), tb.Launch(710, 64, 32)
    sets, fits = tb.Launch(44, 544, 64, 8 << 10), tb.Launch(63, 256, 32, 100 << 10)
    ahead = [[0, 1], [0, 1]]
    assert finds_room([first, second], [sets, fits], spec, spec.policy, ahead)
    more = replace(sets, blocks=114)
    assert not finds_room([first, second], [more, fits], spec, spec.policy, ahead)


def test_the_first_block_on_an_idle_sm_configures_it_anew() -> None:
    spec = tb.device("h200")
    first, second = tb.Launch(1700, 64, 16, 8 << 10), tb.Launch(154, 128, 16, 48 << 10, cluster=2)
    ended = tb.Launch(60, 544, 32, 100 << 10, cluster=4)
    ahead = [[0], [0]]
    assert finds_room([first, second], [ended], spec, spec.policy, ahead, [[], []])
    assert not finds_room([first, second], [ended], spec, spec.policy, ahead, ahead)


def test_work_that_ended_between_two_launches_moved_the_turns_of_the_scheduler() -> None:
    # Alone, the last launch finds room behind the two others. Behind `between` their places differ.
    spec = tb.device("h200")
    first = tb.Launch(136, 512, 16, 8 << 10, cluster=8)
    between = tb.Launch(112, 128, 16, 100 << 10, cluster=4)
    second, last = tb.Launch(102, 64, 32, 8 << 10), tb.Launch(64, 1024, 16, cluster=8)
    program = tb.Sequence([first, between, tb.Release(1), second, last])
    traces = [tb.predict(program, spec, None, state) for state in spec.initial_states()]
    assert any((trace[3].smid < 0).any() for trace in traces)
    stay, none = [first, second, last], [[], [], []]
    assert finds_room(stay, [], spec, spec.policy, none, none)
    assert not finds_room(stay, [between], spec, spec.policy, [[], [0], [0]], none)
    assert finds_room(stay, [between], spec, spec.policy, [[0], [0], [0]], none)


@settings(max_examples=examples(600), deadline=None)
@given(st.data())
def test_launches_find_room_when_others_have_ended(data: st.DataObject) -> None:
    spec = tb.device(data.draw(st.sampled_from(GPUS)))
    all_sizes = [0, 1000, 5000, 16384, 40000, 100_000, 200_000]
    sizes = [size for size in all_sizes if size <= spec.shared_memory_per_block]
    sizes = data.draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=2, unique=True))
    most = data.draw(st.sampled_from([40, 130, 600, 1500]))
    staying = data.draw(st.lists(launches(spec, most, sizes), min_size=1, max_size=3))
    ending = data.draw(st.lists(launches(spec, 600, sizes), max_size=3))
    assume(always_fit(staying, ending, spec, spec.policy))
    order = data.draw(
        st.permutations([(one, k < len(staying)) for k, one in enumerate([*staying, *ending])])
    )
    events: list[tb.Launch | tb.Release] = []
    stay, leave = [], []
    for number, (one, stays) in enumerate(order):
        events.append(one)
        (stay if stays else leave).append(number)
        if leave and data.draw(st.booleans()):
            events.append(tb.Release(leave.pop(data.draw(st.integers(0, len(leave) - 1)))))
    events += map(tb.Release, leave)
    state = data.draw(st.sampled_from(spec.initial_states()))
    trace = tb.predict(tb.Sequence(events), spec, None, state)
    for number in stay:
        placed = trace[number]
        smid = placed.smid if placed.final_smid is None else placed.final_smid
        # Behind another launch that waits: whether that one finds room is asked of it.
        assert (smid >= 0).all() or placed.limiter == "queue"


@settings(max_examples=examples(600), deadline=None)
@given(st.data())
def test_launches_in_order_find_room_when_others_have_ended(data: st.DataObject) -> None:
    spec = tb.device(data.draw(st.sampled_from(GPUS)))
    all_sizes = [0, 1000, 5000, 16384, 40000, 100_000, 200_000]
    sizes = [size for size in all_sizes if size <= spec.shared_memory_per_block]
    most = data.draw(st.sampled_from([40, 130, 600, 1500]))
    staying = data.draw(st.lists(launches(spec, most, sizes), min_size=1, max_size=3))
    # Others arrive before each of them: they may be there until it is resident.
    ahead = [data.draw(st.lists(launches(spec, 600, sizes), max_size=2)) for _ in staying]
    ending = [one for row in ahead for one in row]
    firsts = [sum(map(len, ahead[:k])) for k in range(len(ahead) + 1)]
    before = [range(firsts[k + 1]) for k in range(len(staying))]
    proved = [
        finds_room(staying[: k + 1], ending[: firsts[k + 1]], spec, spec.policy, before[: k + 1])
        for k in range(len(staying))
    ]
    assume(all(proved))
    events: list[tb.Launch | tb.Release] = []
    stay, leave, number = [], [], 0
    for k, one in enumerate(staying):
        for each in [*ahead[k], one]:
            events.append(each)
            (stay if each is one else leave).append(number)
            number += 1
            while leave and data.draw(st.booleans()):
                events.append(tb.Release(leave.pop(data.draw(st.integers(0, len(leave) - 1)))))
    events += map(tb.Release, leave)
    state = data.draw(st.sampled_from(spec.initial_states()))
    trace = tb.predict(tb.Sequence(events), spec, None, state)
    for number in stay:
        placed = trace[number]
        smid = placed.smid if placed.final_smid is None else placed.final_smid
        assert (smid >= 0).all() or placed.limiter == "queue"


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_launches_find_room_when_blocks_of_others_have_ended_one_by_one(
    data: st.DataObject,
) -> None:
    spec = tb.device("h200")
    sizes = [0, 3000, 8192, 16384, 49152, 102_400, 163_840]
    most = data.draw(st.sampled_from([130, 400, 1000]))
    staying = data.draw(st.lists(launches(spec, most, sizes), min_size=1, max_size=3))
    ahead = [data.draw(st.lists(launches(spec, 300, sizes), max_size=2)) for _ in staying]
    ending = [one for row in ahead for one in row]
    firsts = [sum(map(len, ahead[:k])) for k in range(len(ahead) + 1)]
    before = [range(firsts[k + 1]) for k in range(len(staying))]
    # All that ends may have ended just before a launch that stays arrives.
    apart = [data.draw(st.booleans()) for _ in staying]
    beside, gone = [], 0
    for k, alone in enumerate(apart):
        gone = firsts[k + 1] if alone else gone
        beside.append(range(gone, firsts[k + 1]))
    assume(
        all(
            finds_room(
                staying[: k + 1], ending[: firsts[k + 1]], spec, spec.policy, before[: k + 1],
                beside[: k + 1],
            )
            for k in range(len(staying))
        )
    )  # fmt: skip
    chance = data.draw(st.randoms(use_true_random=False))
    events, stay = [], []
    for k, one in enumerate(staying):
        for other in ahead[k]:
            short = [1e-6, 1e-5, 5e-5, 2e-4, 5e-4]
            lasts = tuple(
                chance.choice(short) * chance.uniform(0.5, 1.5) for _ in range(other.blocks)
            )
            events.append(replace(other, duration=lasts))
        stay.append(len(events))
        events.append(replace(one, duration=1.0))
    far = data.draw(st.sampled_from([1e-5, 5e-5, 2e-4]))
    times = [0.0]
    for k in range(1, len(events)):
        ended = k in stay and apart[stay.index(k)]
        times.append(times[-1] + (0.05 if ended else far * chance.uniform(0.0, 1.0)))
    state = data.draw(st.sampled_from(spec.initial_states()))
    trace = tb.predict(tb.Sequence(events), spec, None, state, issue_times=times)
    late = [k for k, placed in enumerate(trace) if placed.start_ns.max() > 5e8]
    # One that ends may be in front of those behind it: whether it finds room is asked of it.
    assert not late or late[0] not in stay
