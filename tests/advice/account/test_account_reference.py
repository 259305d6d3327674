"""The account of random records, against one that asks for the cause of every nanosecond."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advice.account.activities import Records, records, short_rules
from advice.account.reference import Host, Work
from helpers import examples
from tbsched.advice.account.account import Account, account_of
from tbsched.advice.account.peers import PEER, SLOWED, TRANSFER
from tbsched.program.activity import CALL, COPY, KERNEL, OPERATOR, STEP, UNKNOWN

_RANDOM = settings(max_examples=examples(600), deadline=None)
_FEW = settings(max_examples=examples(100), deadline=None)


def painted(account: Account) -> dict[tuple[int, int], tuple[str, str]]:
    """Returns the cause of each nanosecond of each GPU, and what it is by."""
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for begin, end, place, label in zip(*(part.tolist() for part in account.parts), strict=True):
        for ns in range(begin, end):
            assert (account.gpus[place], ns) not in found, "a nanosecond has two causes"
            found[account.gpus[place], ns] = account.labels[label]
    return found


@_RANDOM
@given(records())
def test_every_nanosecond_has_its_cause(given_records: Records) -> None:
    want = given_records.reference
    with short_rules():
        account = account_of(given_records.activity)
    assert (account.begin_ns, account.end_ns) == (want.begin, want.end)
    assert list(account.gpus) == want.gpus
    causes = {
        (gpu, ns): want.cause(gpu, ns) for gpu in want.gpus for ns in range(want.begin, want.end)
    }
    found = painted(account)
    assert {at: collective(*cause) for at, cause in found.items()} == {
        at: collective(*cause) for at, cause in causes.items()
    }
    counted = Counter((gpu, *cause) for (gpu, _), cause in found.items())
    assert {row[:3]: round(row.seconds * 1e9) for row in account.rows()} == counted


def collective(cause: str, by: str) -> tuple[str, str]:
    """A cause, where the parts of a collective of several GPUs count as one."""
    return ("collective", "") if cause in ("collective", PEER, SLOWED, TRANSFER) else (cause, by)


@_FEW
@given(records())
def test_idle_times_and_the_work_around_them(given_records: Records) -> None:
    want = given_records.reference
    account = account_of(given_records.activity)
    assert account.activity.duplicates == len(given_records.work) - len(want.work)
    for gpu, idle in zip(want.gpus, account.idle, strict=True):
        idle_ns = [ns for ns in range(want.begin, want.end) if want.ran(gpu, ns) is None]
        gaps = dict.fromkeys(want.gap(gpu, ns) for ns in idle_ns)
        times = zip(idle.times.begin.tolist(), idle.times.end.tolist(), strict=True)
        assert [*times] == [(gap.begin, gap.end) for gap in gaps]
        found = [None if row == UNKNOWN else want.work[row] for row in idle.next.tolist()]
        assert found == [gap.next for gap in gaps]
        found = [None if row == UNKNOWN else want.work[row] for row in idle.before.tolist()]
        assert found == [want.before(gpu, gap.begin) for gap in gaps]


@_FEW
@given(records(), st.lists(st.integers(-5, 120), min_size=1, max_size=5, unique=True))
def test_time_per_step(given_records: Records, edges: list[int]) -> None:
    edges.sort()
    steps = [*zip(edges[:-1:2], edges[1::2], strict=False)]
    host = [row for row in given_records.host if row.kind != STEP]
    host += [
        Host(100 + number, STEP, f"ProfilerStep#{number}", 0, 9, *step)
        for number, step in enumerate(steps)
    ]
    account = account_of(Records(given_records.work, host).activity)
    counted = Counter(
        (gpu, cause, number)
        for (gpu, ns), (cause, _) in painted(account).items()
        for number, (begin, end) in enumerate(steps)
        if begin <= ns < end
    )
    found = {
        (*key, number): ns
        for key, row in account.per_step().items()
        for number, ns in enumerate(row.tolist())
        if ns
    }
    assert found == counted


def test_a_profile_with_nothing_of_the_host() -> None:
    work = [Work(0, KERNEL, "a", 7, 0, 10), Work(0, KERNEL, "b", 7, 20_000, 30_000)]
    assert [row[1:3] for row in account_of(Records(work, []).activity).rows()] == [
        ("unrecorded", "b"), ("kernel", "b"), ("kernel", "a"),
    ]  # fmt: skip


@pytest.mark.parametrize("inner", [0, 1])
def test_of_calls_that_return_at_once_the_outer_one_is_told(inner: int) -> None:
    """Whichever of them stands first in the file."""
    host = [
        Host(1 - inner, CALL, "cudaStreamSynchronize", 0, 0, 12, 20),
        Host(inner, CALL, "cuStreamSynchronize", 0, 0, 13, 20),
        Host(2, CALL, "cudaLaunchKernel", 0, 0, 25, 30, 1),
    ]
    host.sort(key=lambda row: row.number)
    work = [Work(0, KERNEL, "a", 7, 0, 10), Work(0, KERNEL, "b", 7, 32, 40, 1)]
    found = painted(account_of(Records(work, host).activity))
    assert found[0, 22] == ("host", "nothing recorded before b, after cudaStreamSynchronize")


@pytest.mark.parametrize("operator", [0, 1])
def test_a_call_is_in_an_operator_that_lasts_as_long(operator: int) -> None:
    """As times are rounded; whichever of them stands first in the file."""
    host = [
        Host(operator, OPERATOR, "aten::empty", 0, 0, 12, 20),
        Host(1 - operator, CALL, "cudaMalloc", 0, 0, 12, 20),
        Host(2, CALL, "cudaLaunchKernel", 0, 0, 25, 30, 1),
    ]
    host.sort(key=lambda row: row.number)
    work = [Work(0, KERNEL, "a", 7, 0, 10), Work(0, KERNEL, "b", 7, 32, 40, 1)]
    found = painted(account_of(Records(work, host).activity))
    assert found[0, 15] == ("host", "cudaMalloc in aten::empty")


def test_ranges_that_cross() -> None:
    """Some profilers let ranges begin in one and end after it."""
    host = [
        Host(0, CALL, "cudaFree", 0, 0, 12, 20),
        Host(1, CALL, "cudaMalloc", 0, 0, 15, 25),
        Host(2, CALL, "cudaLaunchKernel", 0, 0, 25, 30, 1),
    ]
    work = [Work(0, KERNEL, "a", 7, 0, 10), Work(0, KERNEL, "b", 7, 32, 40, 1)]
    found = painted(account_of(Records(work, host).activity))
    told = [found[0, ns] for ns in (11, 14, 15, 24, 25)]
    assert told == [
        ("host", "nothing recorded before b"), ("host", "cudaFree"),
        ("host", "cudaMalloc in cudaFree"), ("host", "cudaMalloc in cudaFree"),
        ("host", "cudaLaunchKernel of b"),
    ]  # fmt: skip


def test_a_wait_in_a_call_that_does_not_wait_by_its_name() -> None:
    host = [
        Host(0, CALL, "cudaFree", 0, 0, 5, 24),
        Host(1, CALL, "cudaDeviceSynchronize", 0, 0, 6, 12),
        Host(2, CALL, "cudaLaunchKernel", 0, 0, 25, 30, 1),
    ]
    work = [Work(0, KERNEL, "a", 7, 0, 10), Work(0, KERNEL, "b", 7, 32, 40, 1)]
    found = painted(account_of(Records(work, host).activity))
    told = [found[0, ns] for ns in (10, 11, 12, 23)]
    before, after = ("host", "cudaFree"), ("host", "cudaFree, after cudaDeviceSynchronize")
    assert told == [before, before, after, after]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_call_of_two_copies_waits_for_both(reverse: bool) -> None:
    copies = [Work(0, COPY, "h2d", 7, 1, 9, 0), Work(1, COPY, "h2d", 7, 22, 28, 0)]
    host = [
        Host(0, CALL, "cudaMemcpyAsync", 0, 0, 0, 20, 0),
        Host(1, CALL, "cudaLaunchKernel", 0, 0, 25, 32, 1),
    ]
    work = [*(copies[::-1] if reverse else copies), Work(0, KERNEL, "b", 7, 32, 40, 1)]
    found = painted(account_of(Records(work, host).activity))
    assert found[0, 30] == ("host", "cudaLaunchKernel of b")
