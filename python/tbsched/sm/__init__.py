"""What runs inside the SMs: instructions, measured."""

from tbsched.sm.characterization import OPCODES as OPCODES
from tbsched.sm.characterization import Characterization as Characterization
from tbsched.sm.characterization import characterize as characterize
from tbsched.sm.characterization import load_characterization as load_characterization

__all__ = ["OPCODES", "Characterization", "characterize", "load_characterization"]
