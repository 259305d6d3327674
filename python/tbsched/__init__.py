"""Predict which SM every thread block of a sequence of concurrent CUDA kernels lands on.

Run the same sequence on the GPU, compare block by block, and let Hypothesis find and shrink the
sequences on which the two disagree.

    import tbsched as tb

    seq = tb.Sequence([tb.Launch(blocks=66, threads=512, registers=32), tb.Release(0)])
    print(tb.predict(seq, device="h200"))
"""

from importlib import import_module

TYPE_CHECKING = False  # that of typing, which takes longer to load than all of this

# Which module each public name is in. Modules are imported when they are first needed, so that a
# program that predicts does not wait for those that fuzz.
_NAMES_OF = {
    "advice.bounds": "MakespanBounds makespan_bounds",
    "advice.evenness": "Evenness forced_even",
    "advice.explain.explain": "explain",
    "advice.account.account": "AccountRow",
    "advice.explain.explanation": "Cause Explanation Gap",
    "advice.explain.exposed": "Exposed",
    "advice.explain.roots": "Root",
    "advice.launch_configs": "Kernel LaunchConfig LaunchConfigs launch_configs",
    "advice.orders": "best_order",
    "advice.periodic": "Periodic Responses Task periodic",
    "advice.together.budget": "budget",
    "advice.together.capacities": "Capacities Choice capacities",
    "advice.together.capacity": "Capacity capacity",
    "advice.together.coresident": "Coresidency assert_coresident coresident",
    "advice.together.fixes.fix": "Fix",
    "advice.together.limits": "Limit",
    "advice.together.ranks.changes": "RankFix",
    "advice.together.ranks.coresident": "RankCoresidency",
    "advice.what_if": "what_if",
    "calibration.boards.describe": "describe",
    "calibration.calibrate": "calibrate",
    "campaigns.campaign": "fuzz",
    "campaigns.steer": "Steered steer",
    "comparison.compare": "Diff Divergence compare",
    "comparison.times": "TimeDiff compare_times",
    "comparison.verify": "Score verify",
    "errors": "CudaError DeadlineExceeded NoGpuError SharedGpu TbschedError UnstableMeasurement",
    "hangs.find": "assert_not_hanging hang",
    "hangs.hang": "HangFix HangReport NeverStarts OnGpu",
    "hangs.live": "capture",
    "hardware.catalogue": "ablations device devices",
    "hardware.differences": "DeviceDiff compare_devices",
    "hardware.initial_state": "InitialState",
    "hardware.partitions": "SplitCounts mps_sms split_counts split_sms",
    "hardware.spec": "DeviceSpec",
    "hardware.written": "save_device",
    "importers.programs": "load_program",
    "launcher.launch_of": "launch_of",
    "launcher.meet": "Meeting meet meet_many",
    "launcher.observe": "observe observe_many",
    "prediction.fitting.durations": "fit_durations",
    "prediction.outcomes": "Outcome outcomes",
    "prediction.predict": "launch_orders policies predict predict_as_recorded predict_many",
    "prediction.processes": "Processes predict_processes",
    "program.duration": "Drawn",
    "program.partition": "Partition SmSplit",
    "program.program": "Program",
    "program.ranks": "Rank",
    "program.sequence": (
        "LEGACY_STREAM Conditional Copy Graph GraphLaunch HostCall HostFunction Launch MemAlloc "
        "MemFree Memset RecordEvent Release Sequence Synchronize WaitEvent WaitValue WriteValue"
    ),
    "traces.files": "load_traces save_traces",
    "traces.placement": "Placement",
    "traces.hang": "Hang",
    "traces.residents": "Residents",
    "traces.trace": "Trace",
}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names.split()}
_MODULES = ("show", "sm", "strategies")  # public by their own names

if TYPE_CHECKING:
    __version__: str
    from tbsched import show as show
    from tbsched import sm as sm
    from tbsched import strategies as strategies
    from tbsched.advice.account.account import AccountRow as AccountRow
    from tbsched.advice.bounds import MakespanBounds as MakespanBounds
    from tbsched.advice.bounds import makespan_bounds as makespan_bounds
    from tbsched.advice.evenness import Evenness as Evenness
    from tbsched.advice.evenness import forced_even as forced_even
    from tbsched.advice.explain.explain import explain as explain
    from tbsched.advice.explain.explanation import Cause as Cause
    from tbsched.advice.explain.explanation import Explanation as Explanation
    from tbsched.advice.explain.explanation import Gap as Gap
    from tbsched.advice.explain.exposed import Exposed as Exposed
    from tbsched.advice.explain.roots import Root as Root
    from tbsched.advice.launch_configs import Kernel as Kernel
    from tbsched.advice.launch_configs import LaunchConfig as LaunchConfig
    from tbsched.advice.launch_configs import LaunchConfigs as LaunchConfigs
    from tbsched.advice.launch_configs import launch_configs as launch_configs
    from tbsched.advice.orders import best_order as best_order
    from tbsched.advice.periodic import Periodic as Periodic
    from tbsched.advice.periodic import Responses as Responses
    from tbsched.advice.periodic import Task as Task
    from tbsched.advice.periodic import periodic as periodic
    from tbsched.advice.together.budget import budget as budget
    from tbsched.advice.together.capacities import Capacities as Capacities
    from tbsched.advice.together.capacities import Choice as Choice
    from tbsched.advice.together.capacities import capacities as capacities
    from tbsched.advice.together.capacity import Capacity as Capacity
    from tbsched.advice.together.capacity import capacity as capacity
    from tbsched.advice.together.coresident import Coresidency as Coresidency
    from tbsched.advice.together.coresident import assert_coresident as assert_coresident
    from tbsched.advice.together.coresident import coresident as coresident
    from tbsched.advice.together.fixes.fix import Fix as Fix
    from tbsched.advice.together.limits import Limit as Limit
    from tbsched.advice.together.ranks.changes import RankFix as RankFix
    from tbsched.advice.together.ranks.coresident import RankCoresidency as RankCoresidency
    from tbsched.advice.what_if import what_if as what_if
    from tbsched.calibration.boards.describe import describe as describe
    from tbsched.calibration.calibrate import calibrate as calibrate
    from tbsched.campaigns.campaign import fuzz as fuzz
    from tbsched.campaigns.steer import Steered as Steered
    from tbsched.campaigns.steer import steer as steer
    from tbsched.comparison.compare import Diff as Diff
    from tbsched.comparison.compare import Divergence as Divergence
    from tbsched.comparison.compare import compare as compare
    from tbsched.comparison.times import TimeDiff as TimeDiff
    from tbsched.comparison.times import compare_times as compare_times
    from tbsched.comparison.verify import Score as Score
    from tbsched.comparison.verify import verify as verify
    from tbsched.errors import CudaError as CudaError
    from tbsched.errors import DeadlineExceeded as DeadlineExceeded
    from tbsched.errors import NoGpuError as NoGpuError
    from tbsched.errors import SharedGpu as SharedGpu
    from tbsched.errors import TbschedError as TbschedError
    from tbsched.errors import UnstableMeasurement as UnstableMeasurement
    from tbsched.hangs.find import assert_not_hanging as assert_not_hanging
    from tbsched.hangs.find import hang as hang
    from tbsched.hangs.hang import HangFix as HangFix
    from tbsched.hangs.hang import HangReport as HangReport
    from tbsched.hangs.hang import NeverStarts as NeverStarts
    from tbsched.hangs.hang import OnGpu as OnGpu
    from tbsched.hangs.live import capture as capture
    from tbsched.hardware.catalogue import ablations as ablations
    from tbsched.hardware.catalogue import device as device
    from tbsched.hardware.catalogue import devices as devices
    from tbsched.hardware.differences import DeviceDiff as DeviceDiff
    from tbsched.hardware.differences import compare_devices as compare_devices
    from tbsched.hardware.initial_state import InitialState as InitialState
    from tbsched.hardware.partitions import SplitCounts as SplitCounts
    from tbsched.hardware.partitions import mps_sms as mps_sms
    from tbsched.hardware.partitions import split_counts as split_counts
    from tbsched.hardware.partitions import split_sms as split_sms
    from tbsched.hardware.spec import DeviceSpec as DeviceSpec
    from tbsched.hardware.written import save_device as save_device
    from tbsched.importers.programs import load_program as load_program
    from tbsched.launcher.launch_of import launch_of as launch_of
    from tbsched.launcher.meet import Meeting as Meeting
    from tbsched.launcher.meet import meet as meet
    from tbsched.launcher.meet import meet_many as meet_many
    from tbsched.launcher.observe import observe as observe
    from tbsched.launcher.observe import observe_many as observe_many
    from tbsched.prediction.fitting.durations import fit_durations as fit_durations
    from tbsched.prediction.outcomes import Outcome as Outcome
    from tbsched.prediction.outcomes import outcomes as outcomes
    from tbsched.prediction.predict import launch_orders as launch_orders
    from tbsched.prediction.predict import policies as policies
    from tbsched.prediction.predict import predict as predict
    from tbsched.prediction.predict import predict_as_recorded as predict_as_recorded
    from tbsched.prediction.predict import predict_many as predict_many
    from tbsched.prediction.processes import Processes as Processes
    from tbsched.prediction.processes import predict_processes as predict_processes
    from tbsched.program.duration import Drawn as Drawn
    from tbsched.program.partition import Partition as Partition
    from tbsched.program.partition import SmSplit as SmSplit
    from tbsched.program.program import Program as Program
    from tbsched.program.ranks import Rank as Rank
    from tbsched.program.sequence import LEGACY_STREAM as LEGACY_STREAM
    from tbsched.program.sequence import Conditional as Conditional
    from tbsched.program.sequence import Copy as Copy
    from tbsched.program.sequence import Graph as Graph
    from tbsched.program.sequence import GraphLaunch as GraphLaunch
    from tbsched.program.sequence import HostCall as HostCall
    from tbsched.program.sequence import HostFunction as HostFunction
    from tbsched.program.sequence import Launch as Launch
    from tbsched.program.sequence import MemAlloc as MemAlloc
    from tbsched.program.sequence import MemFree as MemFree
    from tbsched.program.sequence import Memset as Memset
    from tbsched.program.sequence import RecordEvent as RecordEvent
    from tbsched.program.sequence import Release as Release
    from tbsched.program.sequence import Sequence as Sequence
    from tbsched.program.sequence import Synchronize as Synchronize
    from tbsched.program.sequence import WaitEvent as WaitEvent
    from tbsched.program.sequence import WaitValue as WaitValue
    from tbsched.program.sequence import WriteValue as WriteValue
    from tbsched.traces.files import load_traces as load_traces
    from tbsched.traces.files import save_traces as save_traces
    from tbsched.traces.hang import Hang as Hang
    from tbsched.traces.placement import Placement as Placement
    from tbsched.traces.residents import Residents as Residents
    from tbsched.traces.trace import Trace as Trace
else:
    __all__ = sorted(_HOME)


def _check_interpreter() -> None:
    """Refuses a sub-interpreter, in which importing the core would wait for ever.

    Raises:
        ImportError: this is one.
    """
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
        try:
            known = import_module(name)
        except ImportError:
            continue
        if known.get_current() != known.get_main():
            raise ImportError(
                "tbsched works in the main interpreter of a process only, not in a "
                "sub-interpreter; under mod_wsgi set WSGIApplicationGroup %{GLOBAL}"
            )
        return


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOME, *_MODULES])


_check_interpreter()
