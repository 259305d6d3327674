"""A launch configuration of a kernel whose machine code was read."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.advice.evenness import Evenness
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch
from tbsched.sm.characterization.results import Characterization
from tbsched.sm.code import Code

WARP = 32


@dataclass(frozen=True, slots=True)
class Case:
    """What the rules look at.

    Attributes:
        spec: the GPU.
        launch: a block size and a grid.
        evenness: how many of its blocks an SM holds, and whether they spread evenly.
        code: what a warp asks of an SM.
        tables: the measured figures of the GPU's instructions.
        items: that threads loop over, in all; 0: nobody knows.
    """

    spec: DeviceSpec
    launch: Launch
    evenness: Evenness
    code: Code
    tables: Characterization
    items: int = 0

    @property
    def block_warps(self) -> int:
        """Warps of a block."""
        return -(-self.launch.threads // WARP)

    @property
    def blocks(self) -> int:
        """Greatest number of blocks that are on an SM at once."""
        return min(self.evenness.blocks_per_sm, -(-self.launch.blocks // self.spec.sms))

    @property
    def warps(self) -> int:
        """Greatest number of warps that are on an SM at once."""
        return self.blocks * self.block_warps

    @property
    def waves(self) -> float:
        """How often the launch fills the GPU: blocks / blocks that fit."""
        return self.launch.blocks / (self.evenness.blocks_per_sm * self.spec.sms)
