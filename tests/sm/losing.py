"""The smallest workload on which a scheduler is slower than the one that it builds on.

    python tests/sm/losing.py

The paper's authors find that prefetching "consistently" improves or has no effect. Hypothesis looks
for a counterexample, and shrinks it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hypothesis import HealthCheck, find, settings
from hypothesis import strategies as st

from sm.machines import OWL, Row, workload
from tbsched.sm.parameters import Config
from tbsched.sm.running import simulate
from tbsched.sm.workloads import LOAD, Workload

# Two cores and a controller of the paper's GPU, so that few blocks are enough to fill them; and
# L1 takes all lines at once.
GPU = OWL.changed(
    cores=2, controllers=1, mesh_width=2, mesh_height=2, warps_per_core=4, group_warps=1,
    l1_mshrs=4, l1_line_cycles=0,
)  # fmt: skip
SLOWER = 1.05  # at least


def kernels() -> st.SearchStrategy[Workload]:
    """Blocks of a warp, whose loads are of lines in few rows."""
    place = st.tuples(st.integers(0, 5), st.integers(0, 31))  # rows in the order of banks; columns
    load = st.tuples(st.integers(0, 8), place)

    def row(drawn: tuple[int, tuple[int, int]]) -> Row:
        compute, (number, column) = drawn
        return compute, LOAD, number * 32 + column

    warp = st.lists(load.map(row), min_size=1, max_size=6)
    return st.lists(warp, min_size=1, max_size=12).map(workload)


def loses(kernel: Workload, better: str, than: str, gpu: Config = GPU) -> bool:
    """Whether the better one takes longer."""
    cycles = [simulate(kernel, name, gpu).counts["cycles"] for name in (better, than)]
    return cycles[0] >= SLOWER * cycles[1]


# The first prefetch scheme, where a row of the bank or of the controller stops it; L2 is asked.
OF_BANK = GPU.changed(prefetch_stop=1, prefetch_absent=1)
OF_CONTROLLER = GPU.changed(prefetch_stop=2, prefetch_absent=1)
LOOKED_FOR = (
    ("owl", "bank_parallel", GPU), ("bank_parallel", "locality", GPU),
    ("locality", "cta_aware", GPU), ("owl", "bank_parallel", OF_BANK),
    ("owl", "bank_parallel", OF_CONTROLLER), ("bank_parallel", "owl", OF_BANK),
)  # fmt: skip


def main() -> None:
    """Prints what it finds."""
    quiet = settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
    for better, than, gpu in LOOKED_FOR:
        kernel = find(
            kernels(), lambda one, b=better, t=than, g=gpu: loses(one, b, t, g), settings=quiet
        )
        rows = list(zip(kernel.rows.tolist(), kernel.rows[1:].tolist(), strict=False))
        lines = (kernel.address // 64).tolist()
        print(better, than, [
            [(kernel.compute[at].item(), lines[at]) for at in range(*ends)] for ends in rows
        ])  # fmt: skip
        for name in (better, than):
            found = simulate(kernel, name, gpu)
            print(
                " ",
                name,
                found.counts["cycles"],
                found.counts["row_hits"],
                found.counts["prefetches"],
            )


if __name__ == "__main__":
    main()
