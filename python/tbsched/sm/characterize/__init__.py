"""Instruction throughput, latency, warps needed and skew of an SM, measured."""

from tbsched.sm.characterize.frames import Frame, Unverified, frames
from tbsched.sm.characterize.loops import Loop, Mode, Wanted, distances, loops
from tbsched.sm.characterize.opcodes import OPCODES, Opcode, opcode
from tbsched.sm.characterize.toolkit import ToolMissing

