"""Orders and changes that end sooner, as the model predicts."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import gpu, launch
from tbsched import _core
from tbsched.advice.orders import EXACT_UP_TO
from tbsched.prediction.model import prepared
from tbsched.prediction.orders import OrdersOfEvents

ONE = gpu()  # 16 slots
KB = 1024


def timed(blocks: int = 1, ms: float = 1, **rest: Any) -> tb.Launch:
    return launch(blocks, duration=ms * 1e-3, **rest)


def makespan(kernels: list[tb.Launch], spec: tb.DeviceSpec = ONE) -> float:
    return tb.predict(tb.Sequence(kernels), spec).makespan


def test_longest_first_is_found() -> None:
    kernels = [timed(16, ms=1), timed(8, ms=4), timed(8, ms=1)]
    found = tb.best_order(kernels, ONE)
    assert found.given_makespan == makespan(kernels) == pytest.approx(5e-3)
    assert found.makespan == makespan([kernels[k] for k in found.order]) == pytest.approx(4e-3)
    assert found.exact
    assert found.sequence.launches == tuple(kernels[k] for k in found.order)


def test_exact_order_is_the_best_of_all() -> None:
    kernels = [
        timed(5, ms=3),
        timed(9, ms=1, shared_memory=4 * KB),
        timed(12, ms=2, warps=4),
        timed(1, ms=5),
        timed(16, ms=1, shared_memory=20 * KB),
    ]
    every = [makespan(list(order)) for order in itertools.permutations(kernels)]
    found = tb.best_order(kernels, ONE)
    assert found.makespan == min(every) < max(every)
    assert found.predictions == len(every)


def test_order_as_given_is_kept_where_none_is_better() -> None:
    assert tb.best_order([timed(16), timed(16)], ONE).order == (0, 1)


def test_equal_launches_are_predicted_once() -> None:
    found = tb.best_order([timed(2)] * 6 + [timed(16)], ONE)
    assert found.predictions == 7


def test_larger_configuration_first_where_the_first_block_sets_it() -> None:
    spec = gpu()  # one TPC: a block of 1 KB configures it too small for one of 40 KB
    kernels = [timed(2, ms=2), timed(1, ms=2, shared_memory=40 * KB)]
    found = tb.best_order(kernels, spec)
    assert found.order == (1, 0)
    assert (found.given_makespan, found.makespan) == pytest.approx((4e-3, 2e-3))


def test_more_kernels_than_can_be_permuted_are_searched_within_the_budget() -> None:
    kernels = [timed(1 + 3 * k % 16, ms=1 + k * 7 % 5, name=str(k)) for k in range(12)]
    assert len(kernels) > EXACT_UP_TO
    found = tb.best_order(kernels, ONE, max_predictions=300)
    assert not found.exact
    assert found.predictions <= 300
    assert sorted(found.order) == list(range(12))
    assert found.makespan < found.given_makespan
    assert found == tb.best_order(kernels, ONE, max_predictions=300)
    assert "the best found in" in str(found)


def test_search_stops_at_a_local_optimum() -> None:
    found = tb.best_order([timed(1, ms=k + 1) for k in range(8)], ONE)
    assert found.makespan == pytest.approx(8e-3)
    assert found.predictions <= 2 + 3 * 8 * 7


@pytest.mark.parametrize("count", [EXACT_UP_TO, EXACT_UP_TO + 2])
def test_launches_of_a_stream_keep_their_order(count: int) -> None:
    streamed = [timed(1, ms=1, stream=3), timed(16, ms=9, stream=3)]
    kernels = [*streamed, *[timed(k + 1, ms=k + 1) for k in range(count - 2)]]
    order = tb.best_order(kernels, ONE, max_predictions=200).order
    assert order.index(0) < order.index(1)


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([], "kernels: none"),
        ([launch()], r"kernels\[0\]: Launch\.duration: None"),
        ([timed(), timed(stream="legacy")], r"kernels\[1\]: Launch\.stream: 'legacy'"),
        ([timed(1, warps=32, registers=255)], "registers: 255"),
    ],
)
def test_kernels_that_cannot_be_ordered_are_refused(kernels: list[tb.Launch], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.best_order(kernels, ONE)


def test_kernel_that_is_no_launch_is_refused() -> None:
    with pytest.raises(TypeError, match=r"kernels\[0\]: a Launch is needed, got RecordEvent"):
        tb.best_order([tb.RecordEvent(0, 0)], ONE)  # type: ignore[list-item]


def test_carveout_that_lets_launches_share_an_sm_comes_first() -> None:
    seq = tb.Sequence([timed(2, ms=2), timed(1, ms=2, shared_memory=40 * KB)])
    found = tb.what_if(seq, ONE, orders=False, block_sizes=())
    assert found.given.makespan == pytest.approx(4e-3)
    best = found.changes[0]
    assert best.what.startswith("carveout ")
    assert len(found.changes) == 5  # the driver's choice is as it is
    assert best.makespan == pytest.approx(2e-3)
    assert best.saves == pytest.approx(2e-3)
    assert str(found).splitlines()[1].split()[-3:] == ["0", "ns", "0.00"]
    assert str(found).splitlines()[2].split()[-3:] == ["2", "ms", "50.00"]


def test_block_size_keeps_the_threads_in_all_and_shared_memory_per_thread() -> None:
    seq = tb.Sequence([timed(3, warps=4, shared_memory=4 * KB)])
    found = tb.what_if(seq, ONE, orders=False, carveouts=(), block_sizes=(64, 128, 512))
    changed = {change.what: change.sequence.launches[0] for change in found.changes}
    assert changed == {
        "launch 0 in blocks of 64 threads": timed(6, warps=2, shared_memory=2 * KB),
        "launch 0 in blocks of 512 threads": timed(1, warps=16, shared_memory=16 * KB),
    }


def test_change_that_the_device_refuses_is_left_out() -> None:
    seq = tb.Sequence([timed(4, warps=8, shared_memory=40 * KB)])
    found = tb.what_if(seq, ONE, orders=False, carveouts=(), block_sizes=(512, 1024))
    assert [change.what for change in found.changes] == ["launch 0 in blocks of 512 threads"]


def test_order_is_looked_for_where_nothing_else_orders_launches() -> None:
    launches = [timed(16, ms=1), timed(8, ms=4), timed(8, ms=1)]
    found = tb.what_if(tb.Sequence(launches), ONE, carveouts=(), block_sizes=())
    (change,) = found.changes
    assert change.what == "launched in the order 1, 0, 2"
    assert change.saves == found.given.makespan - change.makespan > 0
    ordered = tb.Sequence([*launches, tb.RecordEvent(0, 0)])
    assert not tb.what_if(ordered, ONE, carveouts=(), block_sizes=()).changes


def test_launches_with_durations_are_needed() -> None:
    with pytest.raises(ValueError, match="sequence: launches with durations are needed"):
        tb.what_if(tb.Sequence([launch()]), ONE)
    with pytest.raises(TypeError, match="sequence: a Sequence is needed, got None"):
        tb.what_if(None, ONE)  # type: ignore[arg-type]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_shortest_order_is_the_first_of_the_shortest_of_all_predictions(
    data: st.DataObject,
) -> None:
    ms = st.sampled_from([0, 1, 2, 3])
    kernels = data.draw(
        st.lists(
            st.builds(
                timed,
                st.integers(1, 20),
                ms,
                shared_memory=st.sampled_from([0, 4 * KB, 40 * KB]),
                priority=st.sampled_from([0, -1]),
                stream=st.sampled_from([None, 0, 1]),
            ),
            min_size=1,
            max_size=4,
        )
    )
    kernels[0] = dataclasses.replace(
        kernels[0], duration=tuple(1e-3 * data.draw(ms) for _ in range(kernels[0].blocks))
    )
    interval = data.draw(st.sampled_from([0.0, 5e-4]))
    orders = list(itertools.permutations(range(len(kernels))))
    every = [
        tb.predict(tb.Sequence([kernels[k] for k in order]), ONE, launch_interval=interval).makespan
        for order in orders
    ]
    search = OrdersOfEvents(tb.Sequence(kernels), ONE, None, interval)
    best = min(every)
    limit = round(best * 1e9)
    assert search.shortest(orders) == (orders[every.index(best)], limit)
    assert search.shortest(orders, limit + 1) == (orders[every.index(best)], limit)
    assert search.shortest(orders, limit) is None


@pytest.mark.parametrize(
    ("events", "orders", "message"),
    [
        ([timed()] * 2, [0, 1, 2], "orders: each is of all 2 events, none a release; got 3"),
        ([launch(), tb.Release(0)], [0, 1], "none a release"),
        ([], [], "orders: each is of all 0 events"),
        ([timed()] * 2, [0, 2], "order 0: orders: 2 is none of 2 events"),
        ([timed()] * 2, [0, -1], "order 0: orders: -1 is none of 2 events"),
        ([launch()], [0], "duration: one, or one per block, is needed"),
    ],
)
def test_core_refuses_what_is_no_order(events: list[Any], orders: list[int], message: str) -> None:
    model, _, states = prepared(ONE, ONE.policy)
    state = next(iter(states.values()))
    rows = np.array(orders, np.int32)
    with pytest.raises(ValueError, match=message):
        _core.shortest_order(model, _core.Sequence(events), rows, state, None, 0, 2**63 - 1, 1)


@pytest.mark.parametrize(
    ("name", "is_free"),
    [
        ("nvjet_sm90_hsh_128x64_64x8_1x2_h_bz_NNT", False),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8", False),
        ("ampere_sgemm_128x64_nn", False),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(float*)", False),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(float)", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm>(Params)", False),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", False),
        ("my_kernel(cutlass::half_t*)", True),
        ("void mine::stencil<at::Half>(int)", True),
        ("attention", True),
        ("gemm", True),
        (None, True),
    ],
)
def test_kernels_of_libraries_keep_their_blocks_and_carveouts(
    name: str | None, is_free: bool
) -> None:
    one = tb.Launch(100, 1024, 32, duration=1e-4, name=name)
    found = tb.what_if(tb.Sequence([one]), "h200", carveouts=[50], block_sizes=[256], orders=False)
    assert bool(found.changes) == is_free
    assert len(found.changes) in (0, 2)
    mixed = tb.Sequence([dataclasses.replace(one, name="own"), one])
    found = tb.what_if(mixed, "h200", carveouts=[50], block_sizes=(), orders=False)
    (change,) = found.changes
    assert [launch.carveout for launch in change.sequence.launches] == [50, 50 if is_free else None]
    assert ("of no library" in change.what) != is_free


def test_gains_are_in_one_unit_and_small_ones_are_not_worth_a_change() -> None:
    short, long = (tb.Launch(132, 1024, 32, duration=d, name="k") for d in (1e-6, 1e-3))
    alone = tb.what_if(tb.Sequence([long]), "h200", block_sizes=(), orders=False)
    assert str(alone).endswith("5 changes tried, nothing worth changing: none saves 1 % or more")
    halves = [dataclasses.replace(long, blocks=264, threads=512, registers=64), short]
    better = tb.what_if(tb.Sequence(halves), "h200", carveouts=(), block_sizes=[256], orders=False)
    best = better.changes[0]
    saved = better.given.makespan - best.makespan
    assert (saved > 0.01 * better.given.makespan) == ("the best saves" in str(better))
    assert "times as fast" not in str(better)


@pytest.mark.parametrize(
    "one",
    [
        tb.Launch(660, 128, 32, 40_000, cooperative=True, duration=1e-4),
        tb.Launch(8, 1, 32, 30_796, duration=1e-5),
    ],
)
def test_changes_that_the_device_refuses_are_left_out(one: tb.Launch) -> None:
    found = tb.what_if(tb.Sequence([one]), "h200")
    assert found.given.makespan == tb.predict(tb.Sequence([one]), "h200").makespan
    for change in found.changes:
        assert change.makespan == tb.predict(change.sequence, "h200").makespan
