"""Three puzzles of users, each from a public thread, and what a GPU did."""

from __future__ import annotations

from helpers import KB
from tbsched.program.sequence import Launch

# A megakernel: its workers wait for its schedulers. Only 116 of the workers start.
WORKERS = Launch(128, 256, 168, 100 * KB, name="workers")
SCHEDULERS = Launch(16, 128, 32, name="schedulers")
# Every SM would hold blocks of both. They use disjoint SMs.
SMALL = Launch(64, 256, 32, name="small")
LARGE = Launch(132, 128, 32, 200 * KB, name="large")
# A GEMM of clusters of 4 reaches 91 % of the SMs, and less beside communication.
GEMM = Launch(120, 384, 168, 200 * KB, cluster=4, name="gemm")
COMMUNICATION = Launch(24, 256, 32, name="communication")
