"""Memory controllers against what Ramulator 2.1 documents of its own.

Its README ("Validation and Regression Tests") and the tests that it names say which commands follow
short streams of requests, how far apart they are, and which latency and bandwidth result. They use
DDR4-2400R without refresh; so does this.
"""

from __future__ import annotations

import numpy as np
import pytest

from sm.machines import OWL
from tbsched.sm.memory import dram_commands

ACT, RD, WR, PRE = range(4)
# JEDEC DDR4-2400R, 8 Gb x8: cycles of 1,200 MHz; columns of one bank group.
DDR4 = OWL.changed(
    controllers=1, dram_mhz=1200, banks=16, row_bytes=8192, bank_interleave=8192, bus_bytes=8,
    t_cl=16, t_wl=12, t_rcd=16, t_ras=39, t_rp=16, t_rc=55, t_rrd=6, t_faw=26, t_ccd=6, t_rtp=9,
    t_rtw=12, t_cdlr=9, t_wr=18,
)  # fmt: skip
LINE, ROW = DDR4["line_bytes"], DDR4["row_bytes"] * DDR4["banks"]


def sent(addresses: list[int]) -> tuple[list[int], list[int]]:
    """The kinds and cycles of the commands for reads that come together."""
    found = dram_commands([(0, address, False) for address in addresses], DDR4)
    return found["kind"].tolist(), found["cycle"].tolist()


@pytest.mark.parametrize(
    ("addresses", "kinds", "gaps"),
    [
        # (from, to): the timing parameters that lie between.
        ([0], [ACT, RD], {(0, 1): ["t_rcd"]}),
        ([0, LINE], [ACT, RD, RD], {(0, 1): ["t_rcd"], (1, 2): ["t_ccd"]}),
        ([0, ROW], [ACT, RD, PRE, ACT, RD],
         {(0, 1): ["t_rcd"], (0, 2): ["t_ras"], (2, 3): ["t_rp"], (3, 4): ["t_rcd"]}),
        # A request that is ready goes before an older one that is blocked.
        ([0, ROW, 0], [ACT, RD, RD, PRE, ACT, RD], {}),
        # All hits of a row go before it is closed.
        ([*range(0, 8192, LINE), ROW], [ACT, *[RD] * 128, PRE, ACT, RD], {}),
    ],
)  # fmt: skip
def test_commands_are_those_of_ramulator(
    addresses: list[int], kinds: list[int], gaps: dict[tuple[int, int], list[str]]
) -> None:
    found, cycles = sent(addresses)
    assert found == kinds
    for (first, second), names in gaps.items():
        assert cycles[second] - cycles[first] == sum(DDR4[name] for name in names)


def test_precharge_waits_for_the_later_of_two_limits() -> None:
    # max(nRCD + nRTP, nRAS), with a read that comes late.
    early, late = 0, 35
    for when in (early, late):
        requests = [(0, 0, False), (when, LINE, False), (when, ROW, False)]
        found = dram_commands(requests, DDR4)
        read = int(found["cycle"][found["kind"] == RD][1])
        precharge = int(found["cycle"][found["kind"] == PRE][0])
        assert precharge == max(DDR4["t_ras"], read + DDR4["t_rtp"])


def test_unloaded_latency_is_that_of_the_formula() -> None:
    # (nRP + nRCD + nCL), of reads of other rows that come one at a time.
    found = dram_commands([(1000 * n, n * ROW, False) for n in range(5)], DDR4)
    reads = found["cycle"][found["kind"] == RD][1:]
    first = found["cycle"][found["kind"] == PRE]
    assert (first % 1000 == 0).all()
    assert (reads + DDR4["t_cl"] - first == sum(DDR4[n] for n in ("t_rp", "t_rcd", "t_cl"))).all()


def test_stream_reaches_the_bandwidth_of_the_bus() -> None:
    # The theoretical peak without refresh: rows of other banks are opened meanwhile.
    gpu = DDR4.changed(t_ccd=4, bank_interleave=LINE)
    lines = 2048
    found = dram_commands([(0, n * LINE, False) for n in range(lines)], gpu)
    cycles = found["cycle"][found["kind"] == RD]
    assert len(cycles) == lines
    busy = (lines - 1) * gpu["line_bytes"] / (2 * gpu["bus_bytes"])
    assert busy / np.ptp(cycles) > 0.99
