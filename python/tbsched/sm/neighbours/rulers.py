"""Rulers: kernels that each press on one resource, and what they need of each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tbsched.prediction.neighbours.profiles import KernelProfile
from tbsched.program.sequence import Launch

HERE = Path(__file__).parent
THREADS = 128  # of a block
BLOCKS = (1, 4)  # on each SM
REGISTERS = 40
SHARED_MEMORY = 8196


@dataclass(frozen=True, slots=True)
class Ruler:
    """One.

    Attributes:
        kernel: its name in ``rulers.cu``.
        is_far: the memory that it goes through does not fit L2.
        profile: what a block of it needs.
    """

    kernel: str
    is_far: bool
    profile: KernelProfile

    @property
    def name(self) -> str:
        """Such as ``reads far``."""
        return self.profile.name


@cache
def rulers() -> tuple[Ruler, ...]:
    """All, as they were measured on Hopper."""
    rows = json.loads((HERE / "rulers.json").read_text("utf-8"))["rulers"]
    return tuple(Ruler(row["kernel"], row["far"], KernelProfile(**row["profile"])) for row in rows)


def launch_of(sms: int, blocks: int, carveout: int | None) -> Launch:
    """So many blocks of a ruler on each SM."""
    return Launch(sms * blocks, THREADS, REGISTERS, shared_memory=SHARED_MEMORY, carveout=carveout)
