"""Each kind of cause in the smallest trace of torch.profiler, or the fewest records, with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import pytest

import tbsched as tb
from advice.account.activities import Records
from advice.account.reference import Host, Work
from importers.written import call, kernel, kineto, move, sync
from tbsched.advice.account.account import Account, account_of
from tbsched.advice.account.steps import NO_STEPS, steps_of
from tbsched.program.activity import (
    ANNOTATION,
    CALL,
    GRAPH,
    KERNEL,
    MIGRATION,
    Activity,
    ActivityBuilder,
)

Rows: TypeAlias = dict[tuple[str, str], float]
Event: TypeAlias = dict[str, Any]
WAIT, LAUNCH = "cudaDeviceSynchronize", "cudaLaunchKernel"
LAUNCHED = f"{LAUNCH} of k"


def activity(tmp_path: Path, *events: Event) -> Activity:
    program = tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False)
    assert program.activity is not None
    return program.activity


def told(account: Account, gpu: int = 0) -> Rows:
    """Returns by cause the microseconds of a GPU in which nothing ran."""
    busy = ("kernel", "collective", "copy", "migration")
    return {
        row[1:3]: round(1e6 * row.seconds, 3)
        for row in account.rows()
        if row.gpu == gpu and row.cause not in busy
    }


def idle(tmp_path: Path, *events: Event) -> Rows:
    return told(account_of(activity(tmp_path, *events)))


def busy(tmp_path: Path, *events: Event) -> Rows:
    rows = account_of(activity(tmp_path, *events)).rows()
    return {row[1:3]: round(1e6 * row.seconds, 3) for row in rows}


def ran(kind: str, name: str, begin: float, end: float, tid: int = 1, pid: int = 5) -> Event:
    """Something that a host thread was in, but no call."""
    return call(0, begin, end - begin, name, tid) | {"cat": kind, "pid": pid}


def on(gpu: int, event: Event) -> Event:
    event["args"]["device"] = gpu
    return event


FIRST = (call(1, 0, 5), kernel(1, 10, 100, name="k"))  # ends at 110


# -- what the host does ----------------------------------------------------------------------------


def test_work_after_a_synchronisation_is_named_with_the_wait(tmp_path: Path) -> None:
    found = idle(
        tmp_path, *FIRST, call(2, 20, 95, WAIT),
        ran("python_function", "train.py(3): step", 116, 1000), call(3, 1000, 5),
        kernel(3, 1010, 10),
    )  # fmt: skip
    assert found == {
        ("host", WAIT): 5,
        ("host", f"nothing recorded before k, after {WAIT}"): 1,
        ("host", f"train.py(3): step, after {WAIT}"): 884,
        ("host", f"{LAUNCH} of k, after {WAIT}"): 5,
        ("host", "k on its way to the GPU"): 5,
    }


def test_an_old_name_of_a_wait_is_one(tmp_path: Path) -> None:
    events = [
        call(1, 0, 5), kernel(1, 8, 50, name="k"), call(2, 6, 56, "cudaThreadSynchronize"),
        call(3, 90, 5), kernel(3, 98, 50, name="k"),
    ]  # fmt: skip
    found = activity(tmp_path, *events)
    assert ("host", f"{LAUNCHED}, after cudaThreadSynchronize") in told(account_of(found))
    program = tb.load_program(tmp_path / "trace.json", fit=False)
    assert any(isinstance(event, tb.Synchronize) for event in program.sequence)


def test_a_wait_that_returned_before_the_gap_is_not_told(tmp_path: Path) -> None:
    found = idle(tmp_path, call(9, 0, 8, WAIT), *FIRST, call(2, 500, 5), kernel(2, 507, 10))
    assert {by for _, by in found} == {
        "nothing recorded before k",
        LAUNCHED,
        "k on its way to the GPU",
    }


def test_work_after_a_blocking_copy_is_after_its_call(tmp_path: Path) -> None:
    found = idle(
        tmp_path, *FIRST, ran("cpu_op", "aten::item", 15, 125), call(2, 20, 100, "cudaMemcpy"),
        move(2, 110, 8, name="Memcpy DtoH (Device -> Pageable)"), call(3, 200, 5),
        kernel(3, 207, 9),
    )  # fmt: skip
    after = ", after cudaMemcpy in aten::item"
    assert found == {
        ("host", "cudaMemcpy in aten::item"): 2,
        ("host", f"aten::item{after}"): 5,
        ("host", f"nothing recorded before k{after}"): 75,
        ("host", f"{LAUNCHED}{after}"): 5,
        ("host", "k on its way to the GPU"): 2,
    }


def test_a_launch_call_that_was_blocked_is_named(tmp_path: Path) -> None:
    operators = [ran("cpu_op", "aten::linear", 45, 400), ran("cpu_op", "aten::mm", 46, 399)]
    found = idle(tmp_path, *FIRST, *operators, call(2, 50, 300), kernel(2, 352, 10))
    assert found == {
        ("host", f"{LAUNCH} in aten::linear"): 240,
        ("host", "k on its way to the GPU"): 2,
    }


def test_the_annotation_around_it_is_named(tmp_path: Path) -> None:
    events = [
        ran("user_annotation", "epoch", 100, 900), ran("user_annotation", "forward", 112, 600),
        ran("cpu_op", "aten::linear", 200, 500), call(0, 210, 50, "cudaMalloc"),
        call(0, 520, 30, "cudaFree"), call(2, 700, 5), kernel(2, 707, 10),
    ]  # fmt: skip
    assert idle(tmp_path, *FIRST, *events) == {
        ("host", "epoch"): 2 + 100,
        ("host", "forward, within epoch"): 88 + 20 + 50,
        ("host", "aten::linear, within forward"): 250,
        ("host", "cudaMalloc in aten::linear, within forward"): 50,
        ("host", "cudaFree, within forward"): 30,
        ("host", f"{LAUNCHED}, within epoch"): 5,
        ("host", "k on its way to the GPU"): 2,
    }


def test_a_call_that_allocates_is_named_and_not_what_it_calls(tmp_path: Path) -> None:
    for end in (230, 320):
        calls = [call(0, 120, 200, "cudaMalloc"), call(0, 130, end - 130, "cuMemAlloc_v2")]
        found = idle(tmp_path, *FIRST, *calls, call(2, 320, 5), kernel(2, 327, 10))
        assert found["host", "cudaMalloc"] == 200
        assert ("host", "cuMemAlloc") not in found


def test_a_thread_with_nothing_recorded_waits_for_another_one(tmp_path: Path) -> None:
    """The thread of the backward pass has nothing to do while the other one is in the forward."""
    forward = ran("cpu_op", "aten::linear", 105, 900)
    others = ran("python_function", "elsewhere", 100, 1000, pid=6)
    backward = [call(2, 1000, 5, tid=2), kernel(2, 1007, 10)]
    found = idle(tmp_path, *FIRST, forward, others, *backward)
    assert found == {
        ("host", "aten::linear"): 790,
        ("host", "nothing recorded before k"): 100,
        ("host", LAUNCHED): 5,
        ("host", "k on its way to the GPU"): 2,
    }


def test_operators_that_an_operator_in_python_calls_are_named(tmp_path: Path) -> None:
    events = [
        *FIRST, ran("cpu_op", "vllm::moe_forward", 90, 950),
        ran("python_function", "moe.py(3): forward", 95, 940),
        ran("cpu_op", "aten::linear", 200, 500), ran("cpu_op", "aten::addmm", 250, 450),
        call(2, 900, 5), kernel(2, 907, 10),
    ]  # fmt: skip
    found = idle(tmp_path, *events)
    assert found["host", "aten::linear"] == 300
    assert found["host", "moe.py(3): forward"] == 490
    assert ("host", "aten::addmm") not in found


def test_what_the_engine_of_the_backward_pass_calls_is_named_by_itself(tmp_path: Path) -> None:
    events = [
        *FIRST, ran("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 90, 950),
        ran("cpu_op", "AddmmBackward0", 100, 300), ran("cpu_op", "aten::mm", 120, 280),
        ran("cpu_op", "aten::item", 400, 700),
        ran("cpu_op", "aten::_local_scalar_dense", 410, 690),
        call(2, 900, 5), kernel(2, 907, 10),
    ]  # fmt: skip
    found = idle(tmp_path, *events)
    assert found["host", "AddmmBackward0"] == 190
    assert found["host", "aten::item"] == 300
    assert not {name for _, name in found} & {"aten::mm", "aten::_local_scalar_dense"}


def test_a_thread_in_an_annotation_waits_for_the_backward_pass(tmp_path: Path) -> None:
    own = ran("user_annotation", "backward", 90, 900)
    bucket = ran("cpu_op", "copy_bucket_to_grad", 300, 500, tid=2)
    events = [*FIRST, own, bucket, call(2, 900, 5), kernel(2, 907, 10)]
    assert idle(tmp_path, *events)["host", "backward"] == 790
    # The other thread is that of the backward pass.
    engine = ran("cpu_op", "autograd::engine::evaluate_function: MulBackward0", 150, 250, tid=2)
    found = idle(tmp_path, *events, engine)
    assert found["host", "autograd::engine::evaluate_function: MulBackward0"] == 100
    assert found["host", "copy_bucket_to_grad"] == 200
    assert found["host", "backward"] == 490


def test_a_thread_in_run_backward_waits_for_the_backward_pass(tmp_path: Path) -> None:
    built_in = "<built-in method run_backward of torch._C._EngineBase object at 0x1>"
    own = ran("python_function", built_in, 90, 900)
    copy = ran("cpu_op", "autograd::engine::evaluate_function: ToCopyBackward0", 150, 850, tid=2)
    events = [*FIRST, own, copy, call(9, 300, 500, "cudaMemcpyAsync", tid=2)]
    found = idle(tmp_path, *events, call(2, 900, 5), kernel(2, 907, 10))
    inside = "autograd::engine::evaluate_function: ToCopyBackward0"
    assert found["host", f"cudaMemcpyAsync in {inside}"] == 500
    assert found["host", inside] == 200
    assert sum(us for (_, by), us in found.items() if "run_backward" in by) == 90


def test_a_thread_that_has_something_is_asked_first(tmp_path: Path) -> None:
    forward = ran("cpu_op", "aten::linear", 105, 900)
    own = ran("cpu_op", "MmBackward0", 100, 900, tid=2)
    found = idle(tmp_path, *FIRST, forward, own, call(2, 900, 5, tid=2), kernel(2, 907, 10))
    assert found["host", "MmBackward0"] == 790


def test_of_many_threads_those_with_the_most_calls_are_asked(tmp_path: Path) -> None:
    busy = [call(0, 1 + n, 0.5, "cudaGetDevice", tid) for tid in range(10, 17) for n in range(3)]
    silent = ran("cpu_op", "aten::linear", 100, 900, tid=9)
    last = [call(2, 900, 5, tid=2), kernel(2, 907, 10)]
    assert ("host", "aten::linear") in idle(tmp_path, *FIRST, *busy[:9], silent, *last)
    assert ("host", "aten::linear") not in idle(tmp_path, *FIRST, *busy, silent, *last)


@pytest.mark.parametrize("name", ["cuModuleLoadData", "cudaFuncGetAttributes", "cuLibraryLoadData"])
def test_a_call_that_loads_is_a_first_use(tmp_path: Path, name: str) -> None:
    loading = call(0, 200, 50, name)
    found = idle(tmp_path, *FIRST, loading, call(2, 300, 5), kernel(2, 307, 9, name="new"))
    assert found["first_use", f"new ({name})"] == 50
    assert found["host", "nothing recorded before new"] == 140


def test_a_long_first_launch_is_a_first_use_and_a_long_second_one_is_not(tmp_path: Path) -> None:
    found = idle(
        tmp_path, *FIRST, call(2, 120, 200), kernel(2, 322, 8, name="new"), call(3, 330, 200),
        kernel(3, 532, 8, name="new"), call(4, 540, 100), kernel(4, 642, 9, name="newer"),
    )  # fmt: skip
    assert found["first_use", f"new ({LAUNCH})"] == 200
    assert found["host", f"{LAUNCH} of new"] == 200
    assert found["host", f"{LAUNCH} of newer"] == 100  # a short first one is none, either
    assert {by for cause, by in found if cause == "first_use"} == {f"new ({LAUNCH})"}


def test_a_call_of_which_the_profile_says_that_it_loaded() -> None:
    builder = ActivityBuilder()
    builder.add_call(LAUNCH, 0, 0, 20_000, 25_000, 1)
    builder.loaded(1)
    builder.add_work(0, KERNEL, "a", 7, 0, 10_000, -1)
    builder.add_work(0, KERNEL, "b", 7, 26_000, 30_000, 1)
    assert told(account_of(builder.built()[0])) == {
        ("first_use", "b"): 10,
        ("first_use", f"b ({LAUNCH})"): 5,
        ("host", "b on its way to the GPU"): 1,
    }


# Between GPUs.


def two_gpus() -> list[Event]:
    """One thread launches on both, and waits for the second one, which takes longer."""
    return [
        *FIRST, call(2, 6, 5), on(1, kernel(2, 12, 488, name="long")), call(3, 20, 490, WAIT),
        call(4, 510, 5), kernel(4, 517, 10),
    ]  # fmt: skip


def test_a_wait_for_another_gpu(tmp_path: Path) -> None:
    account = account_of(activity(tmp_path, *two_gpus()))
    assert told(account) == {
        ("synchronize", f"{WAIT}, for another GPU"): 390,
        ("host", WAIT): 10,
        ("host", f"{LAUNCH} of k, after {WAIT}"): 5,
        ("host", "k on its way to the GPU"): 2,
    }


def test_a_gpu_that_starts_late_and_one_that_ends_early(tmp_path: Path) -> None:
    account = account_of(activity(tmp_path, *two_gpus()))
    assert account.gpus == (0, 1)
    assert (account.begin_ns, account.end_ns) == tuple(
        round(account.begin_ns + ns) for ns in (0, 517_000)
    )
    assert told(account, gpu=1) == {
        ("no_work", "nothing more ran"): 27,
        ("host", f"{LAUNCH} of long"): 1,
        ("host", "long on its way to the GPU"): 1,
    }
    for gpu in account.gpus:
        assert sum(row.seconds for row in account.rows() if row.gpu == gpu) == pytest.approx(517e-6)


# On the GPU.


def test_what_waited_in_its_stream(tmp_path: Path) -> None:
    found = idle(tmp_path, *FIRST, call(2, 20, 5), kernel(2, 112.5, 10, name="next"))
    assert found == {("stream", "next"): 2.5}


def test_what_waited_for_an_event(tmp_path: Path) -> None:
    waits = call(2, 20, 5, "cudaStreamWaitEvent")
    last = [call(3, 30, 5), kernel(3, 113, 10, 13, name="other")]
    assert idle(tmp_path, *FIRST, waits, sync(2, "Stream Wait Event", 13), *last) == {
        ("event", "other"): 3
    }
    assert idle(tmp_path, *FIRST, *last) == {("unexplained", "other"): 3}
    # One before another launch of the thread is for that launch, unless another thread launched.
    for thread, cause in ((1, "unexplained"), (2, "event")):
        between = [call(4, 26, 2, tid=thread), kernel(4, 40, 5, 20, name="between")]
        assert idle(tmp_path, *FIRST, waits, *between, *last) == {(cause, "other"): 3}
    elsewhere = call(2, 20, 5, "cudaStreamWaitEvent", tid=2)
    assert idle(tmp_path, *FIRST, elsewhere, *last) == {("unexplained", "other"): 3}


def test_what_waits_for_its_stream_and_for_an_event_waits_for_its_stream(tmp_path: Path) -> None:
    waits = call(2, 20, 5, "cudaStreamWaitEvent")
    assert idle(tmp_path, *FIRST, waits, call(3, 30, 5), kernel(3, 113, 10)) == {("stream", "k"): 3}


def test_a_call_that_returned_when_the_gap_began_is_not_late(tmp_path: Path) -> None:
    assert idle(tmp_path, *FIRST, call(2, 90, 20), kernel(2, 113, 10)) == {("stream", "k"): 3}
    found = idle(tmp_path, *FIRST, call(2, 90, 21), kernel(2, 113, 10))
    assert found == {("host", LAUNCHED): 1, ("host", "k on its way to the GPU"): 2}


def test_what_waited_in_its_graph(tmp_path: Path) -> None:
    nodes = [
        kernel(1, 10, 100, 7, name="a", **{"graph node id": 1}),
        kernel(1, 112, 10, 13, name="b", **{"graph node id": 2}),
    ]
    found = idle(tmp_path, call(1, 0, 5, "cudaGraphLaunch"), *nodes)
    assert found == {("node", "b"): 2}


def test_what_takes_long_to_come_has_another_reason(tmp_path: Path) -> None:
    for late_us, cause in ((100, "stream"), (100.5, "unexplained")):
        found = idle(tmp_path, *FIRST, call(2, 20, 5), kernel(2, 110 + late_us, 10))
        assert found == {(cause, "k"): late_us}
    found = idle(tmp_path, *FIRST, call(2, 120, 5), kernel(2, 300, 10))
    assert found["unexplained", "k"] == 175
    assert ("host", "k on its way to the GPU") not in found


@pytest.mark.parametrize(
    ("late_us", "stream", "cause"),
    [
        (10, 7, "stream"),
        (10.5, 7, "unrecorded"),
        (50, 7, "unrecorded"),
        (9, 13, "unrecorded"),
        (500, 7, "unrecorded"),
    ],
)
def test_work_of_an_unknown_call(tmp_path: Path, late_us: float, stream: int, cause: str) -> None:
    found = idle(tmp_path, *FIRST, kernel(2, 110 + late_us, 10, stream, name="next"))
    assert found == {(cause, "next"): late_us}


@pytest.mark.parametrize("apart_us", [5_000_000, -5_000_000])
def test_clocks_that_are_seconds_apart_say_nothing_of_the_host(
    tmp_path: Path, apart_us: int
) -> None:
    calls = [call(number, 100 * number + apart_us, 50) for number in range(1, 5)]
    work = [kernel(number, 100 * number + 60, 10) for number in range(1, 5)]
    place = kineto(tmp_path / "trace.json", *calls, *work)
    found = tb.explain(tb.load_program(place, fit=False), threshold=0.0)
    causes = {row.cause for row in found.account}
    if apart_us > 0:
        assert causes == {"kernel", "unrecorded"}
        assert found.accounted.clocks_differ == (0,)
        assert "clocks of the host and of GPU 0 do not fit" in str(found)
        assert {c.cause for gap in found.gaps for c in gap.causes} == {"unrecorded"}
    else:  # as if all had been launched long before
        assert causes == {"kernel", "stream"}


def test_clocks_that_differ_by_less_than_a_microsecond_fit(tmp_path: Path) -> None:
    events = [*FIRST, call(2, 200, 5), kernel(2, 199.1, 10)]
    account = account_of(activity(tmp_path, *events))
    assert account.clocks_differ == ()
    assert told(account) == {("host", "nothing recorded before k"): 89.1}


# What runs.


def test_collectives_alone_and_beside_kernels(tmp_path: Path) -> None:
    found = busy(
        tmp_path, kernel(1, 0, 100, name="ncclDevKernel_AllReduce"),
        kernel(2, 40, 20, 13, name="gemm"), kernel(3, 90, 30, 20, name="add"),
    )  # fmt: skip
    assert found == {
        ("collective", "ncclDevKernel_AllReduce"): 70,
        ("kernel", "gemm"): 20,
        ("kernel", "add"): 30,
    }


def test_copies_alone(tmp_path: Path) -> None:
    name = "Memcpy HtoD (Pinned -> Device)"
    events = [
        call(1, 0, 5, "cudaMemcpyAsync"), move(1, 10, 50, name=name),
        call(2, 6, 5, "cudaMemsetAsync"), move(2, 62, 8),
    ]  # fmt: skip
    place = kineto(tmp_path / "trace.json", *events)
    found = tb.explain(tb.load_program(place, fit=False))
    assert [(row[1:3], round(1e6 * row.seconds)) for row in found.account] == [
        (("copy", "h2d pinned"), 50), (("copy", "memset"), 8), (("stream", "memset"), 2),
    ]  # fmt: skip
    assert found.gaps == ()
    assert found.prediction is None


def test_a_whole_graph_and_a_migration_are_work() -> None:
    work = [
        Work(0, GRAPH, "graph 3", 7, 0, 50), Work(0, MIGRATION, "to the GPU", -1, 40, 90),
        Work(0, KERNEL, "k", 7, 80, 100),
    ]  # fmt: skip
    rows = account_of(Records(work, []).activity).rows()
    assert [(row[1:3], round(1e9 * row.seconds)) for row in rows] == [
        (("kernel", "graph 3"), 50), (("migration", "to the GPU"), 30), (("kernel", "k"), 20),
    ]  # fmt: skip


TOUCHED = {("host", WAIT): 5, ("host", f"sum_up, after {WAIT}"): 25}


@pytest.mark.parametrize(
    ("called", "cause"),
    [
        (54, TOUCHED | {
            ("host", "sum_up"): 2, ("host", f"{LAUNCHED}, within sum_up"): 6,
            ("host", "k on its way to the GPU"): 2,
        }),
        (5, {("unrecorded", "d2h (page fault)"): 30, ("unexplained", "k"): 10}),
        (None, TOUCHED),
    ],
)  # fmt: skip
def test_the_host_that_touches_pages_is_late(called: int | None, cause: Rows) -> None:
    """A migration has no call: it comes on the way to the next launch, or after the last one."""
    pages = "d2h (page fault)"
    work = [Work(0, KERNEL, "k", 7, 0, 20, 1), Work(0, MIGRATION, pages, 0, 50, 52)]
    host = [
        Host(0, CALL, LAUNCH, 1, 1, -5, -2, 1), Host(1, CALL, WAIT, 1, 1, 0, 25),
        Host(2, ANNOTATION, "sum_up", 1, 1, 25, 70),
    ]  # fmt: skip
    if called is not None:
        work.append(Work(0, KERNEL, "k", 7, 62, 70, 2))
        host.append(Host(3, CALL, LAUNCH, 1, 1, called, called + 6, 2))
    rows = told(account_of(Records(work, host).activity))
    assert rows == {what: us / 1e3 for what, us in cause.items()}


def test_of_kernels_at_once_the_one_that_started_first_counts(tmp_path: Path) -> None:
    found = busy(tmp_path, kernel(1, 0, 100, 7, name="a"), kernel(2, 50, 100, 13, name="b"))
    assert found == {("kernel", "a"): 100, ("kernel", "b"): 50}


# Gaps before kernels.


def test_gaps_before_kernels_with_and_without_copies(tmp_path: Path) -> None:
    name = "Memcpy HtoD (Pageable -> Device)"
    events = [
        *FIRST, call(2, 20, 5, "cudaMemcpyAsync"), move(2, 111, 50, name=name),
        call(3, 30, 5), kernel(3, 163, 10, name="b"), call(4, 200, 5), kernel(4, 207, 9, name="c"),
    ]  # fmt: skip
    place = kineto(tmp_path / "trace.json", *events)
    found = tb.explain(tb.load_program(place, fit=False), threshold=0.0)
    gaps = [gap for gap in found.gaps if gap.kind in ("idle", "copies")]
    causes = {
        (gap.kind, gap.launch, gap.name): {
            (cause.cause, cause.by): round(1e6 * cause.seconds) for cause in gap.causes
        }
        for gap in gaps
    }
    assert causes == {
        ("copies", 1, "b"): {
            ("copy", "h2d pageable"): 50, ("stream", "h2d pageable"): 1, ("stream", "b"): 2,
        },
        ("idle", 2, "c"): {
            ("host", "nothing recorded before c"): 27, ("host", f"{LAUNCH} of c"): 5,
            ("host", "c on its way to the GPU"): 2,
        },
    }  # fmt: skip


def test_a_kernel_that_is_launched_late_is_late_even_if_copies_run(tmp_path: Path) -> None:
    name = "Memcpy HtoD (Pageable -> Device)"
    events = [
        *FIRST, call(2, 20, 5, "cudaMemcpyAsync"), move(2, 110, 50, name=name), call(3, 190, 5),
        kernel(3, 197, 10, name="b"),
    ]  # fmt: skip
    place = kineto(tmp_path / "trace.json", *events)
    found = tb.explain(tb.load_program(place, fit=False), threshold=0.0)
    (gap,) = (gap for gap in found.gaps if gap.kind == "copies")
    assert [(cause.by, round(1e6 * cause.seconds)) for cause in gap.causes] == [
        ("nothing recorded before b", 80), (f"{LAUNCH} of b", 5), ("b on its way to the GPU", 2),
    ]  # fmt: skip


def test_kernels_that_took_no_time_have_no_gaps(tmp_path: Path) -> None:
    place = kineto(tmp_path / "trace.json", kernel(1, 10, 0), move(2, 30, 5))
    found = tb.explain(tb.load_program(place, fit=False))
    assert [row[1:3] for row in found.account] == [("unrecorded", "memset"), ("copy", "memset")]
    assert found.gaps == ()


def test_copies_from_pageable_memory_of_unknown_calls(tmp_path: Path) -> None:
    events = [move(1, 0, 12, name="Memcpy HtoD (Pageable -> Device)"), kernel(2, 40, 12)]
    found = tb.explain(tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False))
    assert [gap.kind for gap in found.gaps] == ["copies"]


# Steps.


def step_events(*steps: tuple[str, float, float], kind: str = "user_annotation") -> list[Event]:
    """Kernels of 10, 20 and 30 us, 100 us from each other, and annotations."""
    work = [
        event for n in (1, 2, 3) for event in (call(n, 100 * n, 5), kernel(n, 100 * n + 7, 10 * n))
    ]
    return [*work, *(ran(kind, *step) for step in steps)]


def by_step(account: Account) -> dict[str, list[float]]:
    """Returns by cause the microseconds in each step."""
    return {
        cause: [ns / 1e3 for ns in row.tolist()] for (_, cause), row in account.per_step().items()
    }


@pytest.mark.parametrize("name", ["ProfilerStep#{}", "ProfilerStep*{}", "iteration {}", "train"])
def test_time_by_step(tmp_path: Path, name: str) -> None:
    steps = [(name.format(n), 100.0 * n, 100.0 * n + 100) for n in (1, 2, 3)]
    account = account_of(activity(tmp_path, *step_events(*steps)))
    assert account.steps.names == tuple(step[0] for step in steps)
    assert by_step(account) == {"kernel": [10, 20, 30], "host": [83, 80, 7]}


def test_what_is_done_in_each_step_counts_together(tmp_path: Path) -> None:
    events = step_events(*((f"batch {n}", 100.0 * n, 100.0 * n + 99) for n in (1, 2, 3)))
    events += [ran("user_annotation", "tokenize", 100.0 * n + 30, 100.0 * n + 90) for n in (1, 2)]
    account = account_of(activity(tmp_path, *events))
    found = [row for row in told(account) if "tokenize" in row[1]]
    assert found == [("host", "tokenize, within batch #")]
    assert told(account)[found[0]] == 2 * 60
    assert account.steps.names == ("batch 1", "batch 2", "batch 3")


def test_the_median_of_the_steps_is_told(tmp_path: Path) -> None:
    steps = [(f"ProfilerStep#{n}", 100.0 * n, 100.0 * n + 100) for n in (1, 2, 3)]
    place = kineto(tmp_path / "trace.json", *step_events(*steps))
    text = str(tb.explain(tb.load_program(place, fit=False)))
    assert "per step (least to most)" in text
    assert "80 us (7 us to 83 us)" in text
    assert "20 us (10 us to 30 us)" in text


def test_steps_of_a_host_that_runs_ahead_say_nothing_of_the_gpu(tmp_path: Path) -> None:
    """It launches all in the first two steps, and waits in the third."""
    steps = [
        ("ProfilerStep#1", 100, 101),
        ("ProfilerStep#2", 101, 102),
        ("ProfilerStep#3", 102, 400),
    ]
    place = kineto(tmp_path / "trace.json", *step_events(*steps))
    assert "per step" not in str(tb.explain(tb.load_program(place, fit=False)))


def test_steps_of_the_profiler_count_before_other_annotations(tmp_path: Path) -> None:
    steps = [
        ("ProfilerStep#7", 100.0, 350.0),
        *((f"part {n}", 90.0 * n, 90.0 * n + 90) for n in (1, 2, 3)),
    ]
    assert steps_of(activity(tmp_path, *step_events(*steps))).names == ("ProfilerStep#7",)


@pytest.mark.parametrize(
    "steps",
    [
        [("step 1", 100, 200), ("step 2", 200, 337)],
        [("step 1", 100, 202), ("step 2", 200, 302), ("step 3", 300, 337)],
        [("step 1", 100, 130), ("step 2", 200, 230), ("step 3", 300, 330)],
        [("one", 100, 200), ("two", 200, 300), ("three", 300, 337)],
    ],
    ids=["two", "overlap", "little", "unlike"],
)  # fmt: skip
def test_what_is_no_step(tmp_path: Path, steps: list[tuple[str, float, float]]) -> None:
    found = activity(tmp_path, *step_events(*steps))
    assert steps_of(found) == NO_STEPS
    assert account_of(found).per_step() == {}


def repeated(*names: str) -> list[Event]:
    """Kernels of 5 us, 10 us from each other."""
    return [
        event
        for n, name in enumerate(names)
        for event in (call(n + 1, 10.0 * n, 2), kernel(n + 1, 10.0 * n + 4, 5, name=name))
    ]


def test_work_that_repeats_makes_the_steps_where_none_are_marked(tmp_path: Path) -> None:
    events = repeated("load", *("gemm", "relu", "gemm", "norm", "sum") * 4, "save")
    account = account_of(activity(tmp_path, *events))
    assert account.steps.names == ()
    # From the first of "relu", "norm" or "sum" to the next one: a step is of five kernels.
    assert (account.steps.times.end - account.steps.times.begin).tolist() == [50_000] * 3
    assert by_step(account)["kernel"] == [25] * 3
    place = kineto(tmp_path / "trace.json", *events)
    assert "per repetition (least to most)" in str(tb.explain(tb.load_program(place, fit=False)))


def test_a_repetition_with_other_work_in_it_is_none_of_the_steps(tmp_path: Path) -> None:
    step = ("gemm", "relu", "gemm", "norm", "sum")
    account = account_of(activity(tmp_path, *repeated(*step * 3, "other", *step * 4)))
    assert set((account.steps.times.end - account.steps.times.begin).tolist()) == {50_000}


@pytest.mark.parametrize(
    "names", ["k" * 20, "abc" * 3, "abcdeabcde", "abcdefghijklmnop", "abacabadabacaba"]
)
def test_what_does_not_repeat_often_is_no_step(tmp_path: Path, names: str) -> None:
    assert steps_of(activity(tmp_path, *repeated(*names))) == NO_STEPS


def test_steps_of_several_threads_are_none() -> None:
    work = [Work(0, KERNEL, "k", 7, 0, 300)]
    host = [Host(n, ANNOTATION, f"step {n}", 0, n, 100 * n, 100 * n + 100) for n in range(3)]
    assert steps_of(Records(work, host).activity) == NO_STEPS


def test_the_group_that_covers_the_most_time_counts() -> None:
    work = [Work(0, KERNEL, "k", 7, 0, 300)]
    named = [(n, *group) for n in range(3) for group in (("forward", 60), ("batch", 90))]
    host = [
        Host(number, ANNOTATION, name, 0, 0, 100 * n, 100 * n + length)
        for number, (n, name, length) in enumerate(named)
    ]
    assert steps_of(Records(work, host).activity).names == ("batch",) * 3


# Records.


def test_records_that_stand_in_the_file_twice_count_once(tmp_path: Path) -> None:
    events = [*FIRST, FIRST[1], call(2, 20, 5), kernel(2, 112, 10)]
    place = kineto(tmp_path / "trace.json", *events)
    found = tb.explain(tb.load_program(place, fit=False))
    assert found.accounted.activity.duplicates == 1
    assert "1 records stand in the file more than once" in str(found)
    assert found.span == pytest.approx(112e-6)


def test_of_nested_calls_with_one_number_the_outer_one_launched() -> None:
    host = [
        Host(0, CALL, "cuLaunchKernel", 0, 0, 22, 28, 1),
        Host(1, CALL, LAUNCH, 0, 0, 20, 30, 1),
    ]
    work = [Work(0, KERNEL, "a", 7, 0, 10), Work(0, KERNEL, "b", 7, 32, 40, 1)]
    found = Records(work, host).activity
    assert found.work["call"].tolist() == [-1, 1]


def test_nothing_ran() -> None:
    with pytest.raises(ValueError, match="nothing ran on a GPU"):
        account_of(ActivityBuilder().built()[0])
