"""What runs inside the SMs: instructions, measured; kernels that slow each other; and warp
schedulers, caches and DRAM, simulated cycle by cycle.

>>> import tbsched as tb
>>> kernel = tb.sm.preset("IIX", blocks=112)
>>> found = tb.sm.simulate_many(kernel, ["round_robin", "locality"])
>>> found[1].l1_miss_rate < found[0].l1_miss_rate
True
"""

from tbsched.prediction.neighbours.factors import slowdowns
from tbsched.prediction.neighbours.profiles import KernelProfile, load_profiles, save_profiles
from tbsched.sm.characterization import (
    OPCODES,
    Characterization,
    characterize,
    load_characterization,
)
from tbsched.sm.code import Code, Mix, Versus, measured, read_code, versus_vendor
from tbsched.sm.generator import Knobs, preset, presets, synthetic
from tbsched.sm.memory import dram_commands
from tbsched.sm.parameters import Config, config, configs
from tbsched.sm.profiles import NCU_METRICS, load_ncu
from tbsched.sm.results import Simulation, Simulations
from tbsched.sm.rewriting import (
    Ratio,
    Search,
    Timing,
    Variant,
    Variants,
    launcher,
    search,
    variants,
)
from tbsched.sm.running import schedulers, simulate, simulate_many
from tbsched.sm.templates import matrix_product, tune
from tbsched.sm.workloads import Workload, load_workload, save_workload

__all__ = [
    "NCU_METRICS",
    "OPCODES",
    "Characterization",
    "Code",
    "Config",
    "KernelProfile",
    "Knobs",
    "Mix",
    "Ratio",
    "Search",
    "Simulation",
    "Simulations",
    "Timing",
    "Variant",
    "Variants",
    "Versus",
    "Workload",
    "characterize",
    "config",
    "configs",
    "dram_commands",
    "launcher",
    "load_characterization",
    "load_ncu",
    "load_profiles",
    "load_workload",
    "matrix_product",
    "measured",
    "preset",
    "presets",
    "read_code",
    "save_profiles",
    "save_workload",
    "schedulers",
    "search",
    "simulate",
    "simulate_many",
    "slowdowns",
    "synthetic",
    "tune",
    "variants",
    "versus_vendor",
]
