"""Changes that leave out work of a profile, the smallest profile for each; and several at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from importers.written import call, kernel, kineto, move
from profiled import profiled
from tbsched.advice.change import Change
from tbsched.importers.assembly.hosts import NOBODY, taking_turns

US, MS = 1e-6, 1e-3
ELEMENTS = "void at::native::vectorized_elementwise_kernel<4, {}>"


def launched(name: str, stream: int = 0, ms: float = 1.0, **rest: Any) -> tb.Launch:
    given = {"blocks": 132, "threads": 128, "registers": 32, **rest}
    return tb.Launch(**given, stream=stream, duration=ms * MS, name=name)


def explained(*events: Any, host: float = US) -> tb.Explanation:
    return tb.explain(profiled(tb.Sequence(events), "h100", host), "h100")


def change(found: tb.Explanation, words: str) -> Change | None:
    is_joint = words.startswith("together: ")
    return next(
        (x for x in found.changes if words in x.what and x.what.startswith("together") == is_joint),
        None,
    )


def ran(name: str, begin: float, end: float, tid: int = 1) -> dict[str, Any]:
    """An operator of PyTorch."""
    return call(0, begin, end - begin, name, tid) | {"cat": "cpu_op"}


# Kernels that compute element by element.


def test_a_chain_takes_the_time_of_its_longest_kernel() -> None:
    chain = [
        launched(ELEMENTS.format(name), ms=ms) for name, ms in zip("abc", (1, 3, 2), strict=True)
    ]
    found = change(explained(*chain), "3 kernels that compute element by element as 1")
    assert found is not None
    assert found.makespan == pytest.approx(3 * MS, rel=0.01)
    assert [launch.name for launch in found.sequence.launches] == [chain[0].name]


def test_what_comes_again_is_a_chain_of_its_own() -> None:
    chain = [launched(ELEMENTS.format(name)) for name in "ab" * 3]
    found = change(explained(*chain), "6 kernels that compute element by element as 3")
    assert found is not None
    assert found.makespan == pytest.approx(3 * MS, rel=0.01)


@pytest.mark.parametrize(
    "events",
    [
        [launched(ELEMENTS.format("a")) for _ in range(4)],
        [launched(ELEMENTS.format("a")), launched(ELEMENTS.format("b"), blocks=264)],
        [launched(ELEMENTS.format("a")), launched(ELEMENTS.format("b"), stream=1)],
        [launched(ELEMENTS.format("a")), launched("gemm"), launched(ELEMENTS.format("b"))],
        [launched(ELEMENTS.format("a")), tb.Memset(64, stream=0), launched(ELEMENTS.format("b"))],
        [launched(ELEMENTS.format("a")), tb.Synchronize(), launched(ELEMENTS.format("b"))],
        [launched("gemm a"), launched("gemm b")],
    ],
    ids=["same", "sizes", "streams", "between", "memset", "wait", "others"],
)
def test_what_is_no_chain(events: list[Any]) -> None:
    assert change(explained(*events), "element by element") is None


# Kernels and copies that only move data.


def test_kernels_that_only_move_data_are_left_out() -> None:
    cat = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>"
    found = explained(launched("gemm"), launched(cat, ms=2), launched("gemm"))
    left = change(found, "without 1 kernels and copies that only move data")
    assert left is not None
    assert left.makespan == pytest.approx(2 * MS, rel=0.01)
    assert change(explained(launched("gemm"), launched("gemm")), "only move data") is None


def test_what_moves_data_is_promised_once_with_its_kinds() -> None:
    cat = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>"
    copies = [tb.Copy(1 << 24, "d2d", stream=0, duration=MS) for _ in range(3)]
    found = explained(launched("gemm"), *copies, launched(cat), launched("gemm"))
    told = [change.what for change in found.changes if "only move data" in change.what]
    assert len(told) == 1
    assert told[0].startswith("without 4 kernels and copies")
    assert told[0].endswith("such as a d2d copy (3), void at::native::(anonymous namespace):… (1)")


# Products of float32 matrices without tensor cores.

SGEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma"


def test_products_of_float32_have_the_rate_of_tensor_cores_as_a_bound() -> None:
    found = explained(launched(SGEMM, ms=7.4), launched("relu"), launched(SGEMM, ms=7.4))
    fast = change(found, "TF32 in 2 products of float32 matrices")
    assert fast is not None
    assert fast.is_bound
    assert fast.saves == pytest.approx(14.8 * MS * (1 - 1 / 7.4), rel=0.02)


@pytest.mark.parametrize(
    "launch",
    [
        launched("ampere_s1688gemm_128x64_tn", ms=5),  # with tensor cores
        launched("volta_fp16_sgemm_fp16_128x64_tn", ms=5),
        launched("ampere_dgemm_64x64", ms=5),
        launched(SGEMM, ms=5, blocks=16),  # waits for memory more than it computes
    ],
    ids=["tf32", "fp16", "float64", "small"],
)
def test_other_products_are_left_as_they_are(launch: tb.Launch) -> None:
    assert change(explained(launch, launched("relu")), "TF32") is None


# Work of the host that others can do.


@pytest.mark.parametrize(("pieces", "us", "is_told"), [(8, 400, True), (80, 4, False)])
def test_only_pieces_of_work_that_can_be_handed_over_are(
    tmp_path: Path, pieces: int, us: int, is_told: bool
) -> None:
    events: list[dict[str, Any]] = []
    for n in range(pieces):
        at = 2.0 * us * n
        events += [
            ran("collate", at, at + us) | {"cat": "python_function"},
            call(n + 1, at + us, 1), kernel(n + 1, at + us + 2, us / 4, name="gemm"),
        ]  # fmt: skip
    found = tb.explain(tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False))
    assert found.idle["host"] > 0.3 * found.span
    assert (change(found, "the work of collate done before") is not None) == is_told


# Copies that follow each other.


def test_copies_that_follow_each_other_are_one() -> None:
    copies = [tb.Copy(4096, "h2d", stream=0, duration=1e-5) for _ in range(20)]
    found = explained(launched("first"), *copies, launched("gemm"), host=2e-5)
    one = change(found, "20 copies between host and GPU as 1")
    assert one is not None
    assert [event.bytes for event in one.sequence if isinstance(event, tb.Copy)] == [20 * 4096]
    assert 19 * 1e-5 <= one.saves <= 19 * 1.3e-5  # with what is between two copies


@pytest.mark.parametrize("count", [1, 3])
def test_few_copies_are_left_as_they_are(count: int) -> None:
    copies = [tb.Copy(4096, "h2d", stream=0, duration=1e-4) for _ in range(count)]
    found = explained(launched("first"), *copies, launched("gemm"), host=2e-5)
    assert change(found, "between host and GPU as") is None


# Operators that wait.


def masked(tmp_path: Path, times: int) -> tb.Explanation:
    """Kernels, each followed by ``aten::index`` with a mask, which asks how many it keeps."""
    events: list[dict[str, Any]] = []
    for n in range(times):
        at, number = 300.0 * n, 10 * n
        events += [
            call(number + 1, at, 5), kernel(number + 1, at + 8, 20, name="gemm"),
            ran("aten::index", at + 10, at + 200), ran("aten::nonzero", at + 12, at + 150),
            call(number + 2, at + 20, 5), kernel(number + 2, at + 29, 5, name="count"),
            call(number + 3, at + 30, 5, "cudaMemcpyAsync"),
            move(number + 3, at + 40, 2, name="Memcpy DtoH (Device -> Pinned)"),
            call(number + 4, at + 50, 10, "cudaStreamSynchronize"),
            call(number + 5, at + 190, 5), kernel(number + 5, at + 198, 20, name="gather"),
        ]  # fmt: skip
    return tb.explain(tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False))


def test_a_mask_in_the_place_of_its_places(tmp_path: Path) -> None:
    found = masked(tmp_path, 6)
    left = change(found, "without 6 calls of aten::nonzero")
    assert left is not None
    names = [launch.name for launch in left.sequence.launches]
    assert names == ["gemm", "gather"] * 6
    # From the begin of aten::nonzero to the launch of its operator, five times in the makespan.
    assert left.saves == pytest.approx(6 * 178 * US, rel=0.1)


def test_values_that_are_read_one_by_one_go_with_what_is_between(tmp_path: Path) -> None:
    events = [call(1, 0, 5), kernel(1, 8, 20, name="first")]
    for n in range(10):
        at = 50.0 + 40 * n
        events += [
            ran("aten::item", at, at + 20),
            call(10 + n, at + 2, 3, "cudaMemcpyAsync"),
            move(10 + n, at + 8, 2, name="Memcpy DtoH (Device -> Pinned)"),
            call(50 + n, at + 6, 12, "cudaStreamSynchronize"),
        ]
    events += [call(100, 460, 5), kernel(100, 468, 20, name="last")]
    found = tb.explain(tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False))
    left = change(found, "without 10 calls of aten::item")
    assert left is not None
    # All from the first to the last, but for what the calls themselves took.
    assert left.saves == pytest.approx(380 * US, rel=0.12)


def checked(tmp_path: Path, tests: list[str]) -> tb.Explanation:
    """Six functions of the backward pass, each with a test of its result that the host reads."""
    events = [call(1, 0, 5), kernel(1, 8, 20, name="first")]
    for n in range(6):
        at, number = 50.0 + 200 * n, 10 * (n + 1)
        events += [
            ran("autograd::engine::evaluate_function: MulBackward0", at, at + 190),
            ran("MulBackward0", at + 5, at + 50),
            call(number, at + 20, 5), kernel(number, at + 28, 20, name="gemm"),
        ]  # fmt: skip
        for k, name in enumerate(tests):
            begin = at + 60 + 20 * k
            events += [
                ran(name, begin, begin + 18),
                call(number + k + 1, begin + 5, 5),
                kernel(number + k + 1, begin + 12, 4, name=name),
            ]
        read = at + 60 + 20 * len(tests)
        events += [
            ran("aten::item", read, read + 20),
            call(number + 8, read + 5, 5, "cudaMemcpyAsync"),
            move(number + 8, read + 12, 2, name="Memcpy DtoH (Device -> Pinned)"),
            call(number + 9, read + 11, 6, "cudaStreamSynchronize"),
        ]
    return tb.explain(tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False))


def test_checks_of_anomaly_mode_go_with_the_kernels_that_compute_them(tmp_path: Path) -> None:
    found = change(checked(tmp_path, ["aten::isnan", "aten::_is_any_true"]), "without 6 checks")
    assert found is not None
    assert [launch.name for launch in found.sequence.launches] == ["first", *["gemm"] * 6]
    assert found.saves == pytest.approx(6 * 60 * US, rel=0.1)


@pytest.mark.parametrize("tests", [["aten::abs"], ["aten::isnan", "aten::mul"]])
def test_what_the_host_reads_is_no_check_if_it_is_more_than_a_test(
    tmp_path: Path, tests: list[str]
) -> None:
    assert change(checked(tmp_path, tests), "checks for NaN") is None


# Several changes.


def test_changes_are_tried_together() -> None:
    cat = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>"
    chain = [launched(ELEMENTS.format(name)) for name in "ab"]
    found = explained(launched(cat), *chain, launched("gemm"))
    joint = change(found, "together: ")
    assert joint is not None
    assert found.changes[0] is joint
    assert joint.makespan == pytest.approx(2 * MS, rel=0.01)  # of four
    assert joint.condition.count("if ") == 2


def test_one_change_is_not_told_twice() -> None:
    assert change(explained(*[launched(ELEMENTS.format(x)) for x in "ab"]), "together: ") is None


# Threads that take turns.


@pytest.mark.parametrize(
    ("threads", "one"),
    [
        ([1] * 20 + [2] * 20 + [1] * 20 + [2] * 20, {1: 1, 2: 1}),
        ([1, 2] * 40, {1: 1, 2: 2}),
        ([1] * 40 + [2] + [1] * 40, {1: 1, 2: 2}),
        ([1] * 20 + [NOBODY] * 20 + [1] * 20, {1: 1, NOBODY: NOBODY}),
        ([1] * 20 + [2] * 20 + [3] * 20, {1: 1, 2: 1, 3: 1}),
    ],
    ids=["turns", "at once", "one call", "nobody", "three"],
)
def test_threads_that_call_by_turns_are_one(threads: list[int], one: dict[int, int]) -> None:
    found = taking_turns([(10 * k, 10 * k + 5, thread) for k, thread in enumerate(threads)])
    assert {thread: found[thread] for thread in one} == one


def test_a_thread_that_calls_while_another_one_waits_takes_no_turn(tmp_path: Path) -> None:
    # One launches 40 kernels and waits for them. The other one launches 20 meanwhile.
    events = [call(900, 210, 9_000, "cudaStreamSynchronize", tid=1)]
    for n in range(40):
        events += [
            call(n + 1, 5 * n, 4, tid=1),
            kernel(n + 1, 210 * n + 20, 200, 13, grid=(66, 1, 1)),
        ]
    for n in range(20):
        at = 400.0 * n + 300
        events += [call(n + 501, at, 5, tid=2), kernel(n + 501, at + 8, 90, 14, grid=(33, 1, 1))]
    program = tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False)
    assert {event.host for event in program.sequence} == {0, 1}
    assert not any("call by turns" in sentence for sentence in program.assumed)
    assert tb.explain(program).prediction.makespan == pytest.approx(8.41 * MS, rel=0.05)


def test_a_backward_pass_starts_sooner_after_a_shorter_forward_pass(tmp_path: Path) -> None:
    events = []
    for step in range(4):
        for place, thread in enumerate((1, 2)):
            for n in range(8):
                number = 100 * step + 20 * place + n + 1
                at = 2000.0 * step + 1000 * place + 100 * n
                events += [call(number, at, 5, tid=thread), kernel(number, at + 8, 20, name="k")]
    program = tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False)
    assert {event.host for event in program.sequence} == {0}
    assert any("call by turns" in sentence for sentence in program.assumed)
    sooner = [0.0 if n % 16 < 8 else gap for n, gap in enumerate(program.host)]
    given = tb.predict(program.sequence, "h100", host=program.host).makespan
    assert tb.predict(program.sequence, "h100", host=sooner).makespan < 0.7 * given
