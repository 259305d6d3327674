"""Instruction throughput, waits, warps needed and skew of an SM, measured."""

from tbsched.sm.characterization.bench import Bench, Compiled, Workshop
from tbsched.sm.characterization.characterize import characterize
from tbsched.sm.characterization.figures import Figures, Measured, Point, Skew
from tbsched.sm.characterization.frames import Frame, Unverified, frames
from tbsched.sm.characterization.loops import Loop, Mode, Wanted, distances, loops
from tbsched.sm.characterization.opcodes import OPCODES, Opcode, opcode
from tbsched.sm.characterization.placing import Placed, Scope, placed
from tbsched.sm.characterization.results import Characterization, load_characterization
from tbsched.sm.characterization.runs import Run, RunFile, load_runs
from tbsched.sm.characterization.toolkit import ToolMissing

__all__ = [
    "OPCODES",
    "Bench",
    "Characterization",
    "Compiled",
    "Figures",
    "Frame",
    "Loop",
    "Measured",
    "Mode",
    "Opcode",
    "Placed",
    "Point",
    "Run",
    "RunFile",
    "Scope",
    "Skew",
    "ToolMissing",
    "Unverified",
    "Wanted",
    "Workshop",
    "characterize",
    "distances",
    "frames",
    "load_characterization",
    "load_runs",
    "loops",
    "opcode",
    "placed",
]
