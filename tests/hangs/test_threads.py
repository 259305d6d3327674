"""What threads of kernels do, by their instructions and registers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tbsched.hangs.snapshot import Sample
from tbsched.hangs.threads import kernel_activity, polled_addresses, thread_states

POLLING = (
    "YIELD", "R2UR UR6,R6", "LD.E.STRONG.GPU R0,desc[UR6][R2.64+0x10]",
    "ISETP.GE.U32.AND P0,PT,R0,UR4,PT", "@!P0 BRA 0x1000",
)  # fmt: skip
COMPUTING = (
    "FFMA R4,R4,R5,0.5",
    "IADD3 R1,R1,0x1,RZ",
    "ISETP.GE.AND P0,PT,R1,R2,PT",
    "@!P0 BRA 0x1000",
)
CLOCK = "CS2R R2,SR_GLOBALTIMERLO", "ISETP.GE.U64 P0,PT,R2,R4,PT", "@!P0 BRA 0x1000"


def sample(code: tuple[str, ...], at: int, **registers: int) -> Sample:
    listed = tuple((0x1000 + 16 * k, text) for k, text in enumerate(code))
    return Sample(1, (0, 0, 0), (0, 0, 0), 0x1000 + 16 * at, f"k+{16 * at}", listed, registers)


@pytest.mark.parametrize("at", range(len(POLLING)))
def test_loop_that_looks_at_memory_spins_wherever_it_is(at: int) -> None:
    (state,) = thread_states([sample(POLLING, at, R2=0x800000, R3=0x7F33)])
    assert (state.does, state.address) == ("spins", 0x7F3300800010)


@pytest.mark.parametrize("code", [COMPUTING, CLOCK])
def test_registers_that_change_compute(code: tuple[str, ...]) -> None:
    before, now = sample(code, 1, R1=1), sample(code, 1, R1=2)
    assert thread_states([now], [before])[0].does == "computes"
    assert thread_states([now])[0].does == "unknown"  # one look does not tell


def test_the_same_registers_at_the_same_place_spin() -> None:
    now = sample(COMPUTING, 1, R1=1)
    assert thread_states([now], [now])[0].does == "spins"


def test_poll_that_was_left_in_between_goes_on() -> None:
    before, now = sample(POLLING, 2, R2=1, R0=7, R9=4), sample(POLLING, 1, R2=1, R0=8, R9=5)
    assert thread_states([now], [before])[0].does == "computes"  # R9 counts the steps outside
    still = sample(POLLING, 1, R2=1, R0=8, R9=4)
    assert thread_states([still], [before])[0].does == "spins"
    elsewhere = replace(before, pc=0x9000)
    assert thread_states([now], [elsewhere])[0].does == "spins"


def test_poll_that_ends_by_a_count_may_be_left_in_vain() -> None:
    code = (*POLLING[:3], "IADD3 R5,R5,0x1,RZ", "ISETP.GE.AND P0,PT,R5,0x10,PT", "@!P0 BRA 0x1000")
    before, now = sample(code, 2, R9=4), sample(code, 1, R9=5)
    assert thread_states([now], [before])[0].does == "spins"


def test_threads_at_a_barrier_wait() -> None:
    code = ("FFMA R4,R4,R5,0.5", "BAR.SYNC.DEFER_BLOCKING 0x0", "EXIT")
    for at in (1, 2):
        now = sample(code, at)
        assert thread_states([now], [now])[0].does == "waits"


def test_long_loop_with_such_a_load_is_not_said_to_compute() -> None:
    code = ("LD.E.STRONG.SYS R0,desc[UR6][R2.64]", *["FFMA R4,R4,R5,0.5"] * 30)
    before, now = sample(code, 5, R4=1), sample(code, 9, R4=2)
    assert thread_states([now], [before])[0].does == "unknown"


def test_a_kernel_spins_if_one_of_its_threads_does() -> None:
    spins = thread_states([sample(POLLING, 0)])
    waits = thread_states([sample(("BAR.SYNC 0x0", "EXIT"), 0)])
    assert kernel_activity([*waits, *spins]) == "spins"
    assert kernel_activity(waits) == "waits"
    assert kernel_activity([]) == "unknown"


def test_addresses_are_of_the_host_or_not() -> None:
    states = thread_states([
        sample(POLLING, 0, R2=0, R3=1), replace(sample(POLLING, 0, R2=0, R3=2), thread=(1, 0, 0)),
    ])  # fmt: skip
    host, other = polled_addresses(states, lambda address: address < 2 << 32)
    assert (host, other) == ({(1 << 32) + 16}, {(2 << 32) + 16})
