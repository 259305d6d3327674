"""Table II of the ICCD 2023 paper as data.

"Randomized Testing Framework for Dissecting NVIDIA GPGPU Thread Block-To-SM Scheduling Mechanisms":
nine cases on an RTX 3090, each the evidence for one mechanism. Durations are written as the
releases that they amount to.

The table has misprints, read here as the text of section IV has them:

- Cases 1.x: "SMID = 0, 2, 4, …, 40" and "1, 3, 5, …, 41" are of 41 blocks each, on 41 TPCs, so they
  end at 80 and 81.
- The second "Case 4.1" is Case 4.2.
- Case 2.1: the table lets kernels 2 and 4 exit first, the last sentences of the text kernels 1
  and 3. Figure 4 goes with the table.
- Case 4.1: the text has the odd kernels exit at 1 s, then says that the even ones did. The table
  has the even ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.program.sequence import Event, Launch, Release, Sequence

KB = 1024
EVEN = range(0, 82, 2)
ODD = range(1, 82, 2)
ALL = range(82)


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        name: the paper's number of it.
        mechanism: what it is evidence for.
        kernels: each launch, in order.
        smid: the SMs that the paper prints, per kernel; None where it prints none.
        exits: the launches that exit while the others stay.
        concurrent: whether the last kernel runs beside those that stay.
        ablation: a policy, or a device's ablation, that lacks the mechanism, and so fails the case.
    """

    name: str
    mechanism: str
    kernels: tuple[Launch, ...]
    smid: tuple[range | None, ...]
    exits: tuple[int, ...]
    concurrent: bool
    ablation: str

    @property
    def sequence(self) -> Sequence:
        """All kernels launched, then the exits."""
        events: list[Event] = [*self.kernels, *map(Release, self.exits)]
        return Sequence(events)


def _one_sm(name: str, kernels: tuple[Launch, ...], sm: int, ablation: str) -> Case:
    return Case(
        name, "1", kernels, (EVEN, ODD, range(sm, sm + 1)), (), concurrent=True, ablation=ablation
    )


def _quarters(kernel: Launch, ninth: Launch, name: str, concurrent: bool, ablation: str) -> Case:
    kernels = (*[kernel] * 8, ninth)
    return Case(name, "4", kernels, (*[ALL] * 8, None), (1, 3, 5, 7), concurrent, ablation)


CASES = (
    _one_sm("1.1", (Launch(41, 256, 32), Launch(41, 256, 32), Launch(1, 256, 32)), 0, "first_fit"),
    _one_sm(
        "1.2", (Launch(41, 512, 32), Launch(41, 256, 32), Launch(1, 256, 32)), 1, "round_robin"
    ),
    _one_sm(
        "1.3", (Launch(41, 256, 128), Launch(41, 256, 64), Launch(1, 256, 64)), 1, "round_robin"
    ),
    _one_sm(
        "1.4",
        (
            Launch(41, 256, 32, 48 * KB),
            Launch(41, 256, 32, 24 * KB),
            Launch(1, 256, 32, 24 * KB),
        ),
        1,
        "round_robin",
    ),
    Case(
        "2.1",
        "2.1",
        (*[Launch(82, 64, 255)] * 4, Launch(82, 128, 255)),
        (ALL, ALL, ALL, ALL, None),
        exits=(1, 3),
        concurrent=False,
        ablation="free-warps",
    ),
    Case(
        "2.2",
        "2.2",
        (Launch(82, 32, 255), Launch(82, 128, 255), Launch(82, 96, 255)),
        (ALL, ALL, None),
        exits=(),
        concurrent=False,
        ablation="no-warp-skip",
    ),
    Case(
        "3",
        "3",
        (Launch(41, 1, 32), Launch(1, 1, 32, KB)),
        (EVEN, None),
        exits=(),
        concurrent=False,
        ablation="no-configuration",
    ),
    _quarters(Launch(82, 128, 64), Launch(82, 128, 255), "4.1", True, "contiguous-registers"),
    _quarters(
        Launch(82, 32, 32, 10 * KB),
        Launch(82, 32, 32, 40 * KB),
        "4.2",
        False,
        "pooled-shared-memory",
    ),
)
