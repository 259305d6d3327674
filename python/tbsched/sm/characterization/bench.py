"""What runs loops: a GPU, or something in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tbsched.hardware.spec import DeviceSpec
from tbsched.program.arrays import StructuredArray
from tbsched.sm.characterization.frames import Frame, Unverified, frames
from tbsched.sm.characterization.loops import Loop, Mode, Wanted, distances, loops
from tbsched.sm.characterization.opcodes import Opcode
from tbsched.sm.characterization.placing import Placed


class Workshop(Protocol):
    """Maker of loops."""

    def reason(self, opcode: Opcode) -> str:
        """Returns why an opcode has no verified loop; empty if it has one."""

    def waits(self, opcode: Opcode) -> bool:
        """Whether a scoreboard tells that its result is there, and not a number of clocks."""

    def distances(self, opcode: Opcode, mode: Mode) -> tuple[int, ...]:
        """Returns the distances that its loops can have."""

    def loops(self, opcode: Opcode, wanted: Iterable[Wanted]) -> list[Loop]:
        """Verified loops."""


class Bench(Protocol):
    """Runs loops.

    Attributes:
        spec: the GPU, as the predictor sees it.
        iterations: of a loop whose time is taken.
    """

    spec: DeviceSpec
    iterations: int

    def about(self) -> Mapping[str, Any]:
        """What it is: written into the file of runs."""

    def workshop(self, opcodes: Iterable[Opcode]) -> Workshop:
        """Returns the maker of loops of these opcodes for this device."""

    def run(self, loop: Loop, placed: Placed, iterations: int) -> StructuredArray:
        """Runs the loop, and returns the kernel's output: a record per warp of the grid."""


class Compiled:
    """Loops that ptxas compiles and nvdisasm proves.

    Args:
        opcodes: of the loops.
        architecture: of ptxas, such as ``sm_90``.

    Raises:
        ToolMissing: ptxas or nvdisasm is not there.
    """

    def __init__(self, opcodes: Iterable[Opcode], architecture: str) -> None:
        self._architecture = architecture
        self._frames = frames(opcodes, architecture)

    def reason(self, opcode: Opcode) -> str:
        frame = self._frames[opcode.name]
        return str(frame) if isinstance(frame, Unverified) else ""

    def waits(self, opcode: Opcode) -> bool:
        return self._frame(opcode).waits

    def distances(self, opcode: Opcode, mode: Mode) -> tuple[int, ...]:
        return distances(self._frame(opcode), mode)

    def loops(self, opcode: Opcode, wanted: Iterable[Wanted]) -> list[Loop]:
        return loops(self._frame(opcode), wanted, self._architecture)

    def _frame(self, opcode: Opcode) -> Frame:
        """Returns the frame of an opcode. Raises Unverified: it has none."""
        frame = self._frames[opcode.name]
        if isinstance(frame, Unverified):
            raise frame
        return frame
