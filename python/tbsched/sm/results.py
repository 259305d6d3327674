"""What a simulation gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tbsched.program.arrays import HoldsArrays, Int32Array, Int64Array, StructuredArray
from tbsched.shown import Shown
from tbsched.sm.parameters import Config


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Simulation(Shown, HoldsArrays):
    """One kernel, as it ran on a simulated GPU. Prints as a table.

    Attributes:
        workload: its name.
        scheduler: the name of the warp scheduler.
        config: the simulated GPU.
        counts: each counter's value; :ref:`the page <sm-counters>` says what they count.
        core: int32 (blocks,), the core of each block.
        start: int64 (blocks,), when each block started, in core cycles.
        end: int64 (blocks,), when it ended.
        commands: the commands of the memory controllers, in the order of their cycles, if they
            were asked for: a structured array with ``cycle`` (of the DRAM clock), ``controller``,
            ``bank``, ``kind`` (0 activate, 1 read, 2 write, 3 precharge), ``row``, ``column`` and
            ``prefetch``.
        warps: when each warp could issue, if that was asked for: a structured array with ``core``,
            ``warp`` (of the core), ``begin`` and ``end`` (core cycles), by ``end``. Else it waits:
            for memory, for room, or at a barrier.

    Example:
        >>> kernel = tb.sm.preset("SCP", blocks=28)
        >>> found = tb.sm.simulate(kernel, "round_robin")
        >>> found.counts["instructions"] == kernel.instructions
        True
    """

    workload: str
    scheduler: str
    config: Config
    counts: Mapping[str, int]
    core: Int32Array
    start: Int64Array
    end: Int64Array
    commands: StructuredArray | None = field(default=None)
    warps: StructuredArray | None = field(default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))
        HoldsArrays.__post_init__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        kind, values = HoldsArrays.__reduce__(self)
        return kind, tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    def _ratio(self, above: int, below: int) -> float:
        return above / below if below else 0.0

    @property
    def ipc(self) -> float:
        """Warp instructions per core cycle, of all cores together."""
        return self._ratio(self.counts["instructions"], self.counts["cycles"])

    @property
    def l1_miss_rate(self) -> float:
        """The share of the lines loaded that were not in L1."""
        return self._ratio(self.counts["l1_misses"], self.counts["l1_loads"])

    @property
    def l2_hit_rate(self) -> float:
        """The share of the lines that L2 was asked for, and had."""
        reads = self.counts["l2_reads"]
        return self._ratio(reads - self.counts["l2_misses"], reads)

    @property
    def l1_profiled_hit_rate(self) -> float:
        """The share of the sectors loaded that were in L1 or on their way, as profilers count."""
        fetched = self.counts["l1_misses"] - self.counts["l1_merges"]
        loads = self.counts["l1_loads"]
        return self._ratio(loads - fetched, loads)

    @property
    def l2_profiled_hit_rate(self) -> float:
        """The share of the sectors that L2 was asked for, and had or was about to get."""
        fetched = self.counts["l2_misses"] - self.counts["l2_merges"]
        reads = self.counts["l2_reads"]
        return self._ratio(reads - fetched, reads)

    @property
    def row_hit_rate(self) -> float:
        """Row-buffer locality, the share of the lines read and written whose row was open."""
        lines = self.counts["dram_reads"] + self.counts["dram_writes"]
        return self._ratio(self.counts["row_hits"], lines)

    @property
    def bank_parallelism(self) -> float:
        """Banks of all controllers that have requests, on average while any has."""
        return self._ratio(self.counts["bank_cycles"], self.counts["bank_busy_cycles"])

    @property
    def latency(self) -> float:
        """Core cycles from a miss of L1 to its line, on average."""
        return self._ratio(self.counts["latency_cycles"], self.counts["fills"])

    @property
    def queueing(self) -> float:
        """DRAM cycles from the arrival of a read at its controller to its command, on average."""
        return self._ratio(self.counts["queue_cycles"], self.counts["dram_reads"])

    @property
    def memory_blocked(self) -> float:
        """The share of the time in which all warps of a core wait for memory."""
        cycles = self.counts["cycles"] * self.config["cores"]
        return self._ratio(self.counts["memory_block_cycles"], cycles)

    @property
    def without_warps(self) -> float:
        """The share of the time in which a core has no warp."""
        cycles = self.counts["cycles"] * self.config["cores"]
        return self._ratio(self.counts["no_warp_cycles"], cycles)

    @property
    def efficiency(self) -> float:
        """Returns a lower bound of how good the choice of warps was, 0 to 1.

        The fewest cycles in which the cores could issue all instructions, over those that they
        took: N_t over N_r of the thesis on GF100 GPUs (section 5.2).
        """
        return 1 - self.inactive

    @property
    def inactive(self) -> float:
        """The share of the issue slots of all cores that issued nothing."""
        slots = self.config["cores"] * self.config["issue_width"] / self.config["issue_cycles"]
        return 1 - self.ipc / slots


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Simulations(Shown):
    """Many runs. Prints as a table; a run of a workload and config is compared with the first.

    Attributes:
        rows: a :class:`Simulation` for each, by workload, config and scheduler.

    Example:
        >>> kernel = tb.sm.preset("SCP", blocks=28)
        >>> found = tb.sm.simulate_many(kernel, ["round_robin", "perfect_l2"])
        >>> len(found), found.speedup(0), found.speedup(1) > 1
        (2, 1.0, True)
    """

    rows: tuple[Simulation, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Simulation]:
        return iter(self.rows)

    def __getitem__(self, number: int) -> Simulation:
        return self.rows[number]

    def speedup(self, number: int) -> float:
        """Returns the IPC of a run over that of the first run of the same workload and config.

        Args:
            number: of the run.

        Raises:
            IndexError: there is no such run.

        Example:
            >>> tb.sm.simulate_many(tb.sm.preset("SCP", blocks=8), ["owl"]).speedup(0)
            1.0
        """
        row = self.rows[number]
        workload_and_config = (row.workload, row.config)
        first = next(
            other for other in self.rows if (other.workload, other.config) == workload_and_config
        )
        return row.ipc / first.ipc
