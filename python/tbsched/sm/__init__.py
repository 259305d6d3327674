"""What runs inside the SMs: instructions, measured; and warp schedulers, caches and DRAM,
simulated cycle by cycle.

    >>> import tbsched as tb
    >>> baseline = tb.sm.simulate("KMN", scheduler="round_robin")
    >>> owl = tb.sm.simulate("KMN", scheduler="owl")
    >>> owl.ipc > baseline.ipc
    True
"""

from tbsched.sm.characterization import (
    OPCODES,
    Characterization,
    characterize,
    load_characterization,
)
from tbsched.sm.generator import Knobs, preset, presets, synthetic
from tbsched.sm.memory import dram_commands
from tbsched.sm.parameters import Config, config, configs
from tbsched.sm.results import Simulation, Simulations
from tbsched.sm.running import schedulers, simulate, simulate_many
from tbsched.sm.workloads import Workload, load_workload, save_workload

__all__ = [
    "OPCODES",
    "Characterization",
    "Config",
    "Knobs",
    "Simulation",
    "Simulations",
    "Workload",
    "characterize",
    "config",
    "configs",
    "dram_commands",
    "load_characterization",
    "load_workload",
    "preset",
    "presets",
    "save_workload",
    "schedulers",
    "simulate",
    "simulate_many",
    "synthetic",
]
