"""Simulations: one, or many in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched import _core
from tbsched.errors import did_you_mean, shown
from tbsched.program.arrays import structured
from tbsched.program.checks import flag, integer, items
from tbsched.sm.generator import preset
from tbsched.sm.memory import commands_of
from tbsched.sm.parameters import Config, config
from tbsched.sm.results import Simulation, Simulations
from tbsched.sm.workloads import Workload, fitted, integers, load_workload

_WARPS = np.dtype([("core", np.int32), ("warp", np.int32), ("begin", np.int64), ("end", np.int64)])


class Scheduler(Protocol):
    """A warp scheduler of your own, one object per core. It may have ``block_started(place)``, too.

    Example:
        >>> class Lowest:
        ...     def __init__(self, core, places, warps): ...
        ...     def pick(self, ready, waiting, resident, cycle):
        ...         return (ready & -ready).bit_length() - 1
        >>> tb.sm.simulate(tb.sm.preset("SCP", blocks=1, loads=2), Lowest).scheduler
        'Lowest'
    """

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        """Returns the warp that issues now.

        Bit ``w`` of each set stands for warp ``w`` of the core.

        Args:
            ready: the warps that may issue, at least one.
            waiting: those that wait for memory, or at a barrier.
            resident: those of blocks that have not ended.
            cycle: of the core.

        Returns:
            One of the warps that are ready, or -1 to leave the slot empty.
        """


MakeScheduler: TypeAlias = Callable[[int, int, int], Scheduler]
WorkloadLike: TypeAlias = str | os.PathLike[str] | Workload
ConfigLike: TypeAlias = str | os.PathLike[str] | Config


class SchedulerRow(NamedTuple):
    """A warp scheduler that is shipped.

    Example:
        >>> tb.sm.schedulers()[0].name
        'round_robin'
    """

    name: str
    summary: str


def schedulers() -> tuple[SchedulerRow, ...]:
    """Returns the warp schedulers that are shipped.

    Example:
        >>> [row.name for row in tb.sm.schedulers()][-3:]
        ['fair', 'perfect_l2', 'perfect_l1']
    """
    return tuple(SchedulerRow(*row) for row in _core.sm_schedulers())


def simulate(
    workload: WorkloadLike,
    scheduler: str | MakeScheduler = "owl",
    config: ConfigLike = "owl-table1",
    *,
    cores: npt.ArrayLike | None = None,
    commands: bool = False,
    warps: bool = False,
    checked: bool = False,
) -> Simulation:
    """Runs a kernel on a simulated GPU: warp schedulers, caches, network and DRAM.

    The same arguments give the same result. Other threads of Python go on meanwhile.

    Args:
        workload: the name of a preset (:func:`presets`), the path of an ``.npz`` file, or a
            workload.
        scheduler: a name (:func:`schedulers`), or a class of your own. Each core makes one, from
            its number, its places for blocks, and the warps of a block; the block in place ``p``
            has the warps from ``p * warps`` on. :class:`tbsched.sm.running.Scheduler` says what it
            needs. It is slow.
        config: the simulated GPU: a name (:func:`configs`), the path of a ``.toml`` file, or a
            config.
        cores: int (blocks,), the core of each block, such as ``tb.predict(...)[0].smid``. None is
            as the config says.
        commands: whether to keep the commands of the memory controllers.
        warps: whether to keep when each warp could issue.
        checked: whether to check each of these against every timing constraint.

    Raises:
        TypeError, ValueError: a workload, scheduler, config or core that cannot be; a scheduler
            that picks a warp which is not ready.

    Example:
        >>> found = tb.sm.simulate(tb.sm.preset("KMN", blocks=28), "round_robin", "owl-table1")
        >>> found.counts["l1_loads"]
        24080
    """
    kernel, gpu = _workload(workload), _config(config)
    policy = _scheduler(scheduler)
    make = None if isinstance(policy, str) else policy
    counts, core, start, end, columns, awake = _core.sm_simulate(
        (kernel.warps_per_block, kernel.blocks_per_core),
        *fitted(kernel, gpu["line_bytes"], gpu["line_sectors"]),
        dict(gpu.values),
        policy if isinstance(policy, str) else "round_robin",
        make,
        np.array([], np.int32) if cores is None else integers("cores", cores, np.int32, "simulate"),
        flag("simulate", "commands", commands),
        flag("simulate", "warps", warps),
        flag("simulate", "checked", checked),
    )  # fmt: skip
    name = policy if isinstance(policy, str) else getattr(policy, "__name__", "own")
    log = commands_of(columns) if commands else None
    issuing = structured(awake, _WARPS) if warps else None
    return Simulation(kernel.name, name, gpu, counts, core, start, end, log, issuing)


def simulate_many(
    workloads: WorkloadLike | Iterable[WorkloadLike],
    schedulers: str | Iterable[str] | None = None,
    configs: ConfigLike | Iterable[ConfigLike] = "owl-table1",
    *,
    threads: int | None = None,
) -> Simulations:
    """Runs every workload with every scheduler on every config, several at a time.

    Args:
        workloads: one or more, as for :func:`simulate`.
        schedulers: one name or more; None is all that are shipped.
        configs: one or more, as for :func:`simulate`.
        threads: how many run at a time; None is one per processor.

    Raises:
        TypeError, ValueError: as :func:`simulate`.

    Example:
        >>> found = tb.sm.simulate_many(tb.sm.preset("SCP", blocks=8), ["round_robin", "owl"])
        >>> found[1].scheduler
        'owl'
    """
    kernels = [_workload(item) for item in _listed("workloads", workloads)]
    gpus = [_config(item) for item in _listed("configs", configs)]
    rows = [(item, gpu) for item in kernels for gpu in gpus]
    shipped = [row[0] for row in _core.sm_schedulers()]
    wanted = shipped if schedulers is None else schedulers
    names = [_scheduler(item) for item in _listed("schedulers", wanted)]
    max_threads = integer("simulate_many", "threads", threads or os.cpu_count() or 1, 1, 1024)
    with ThreadPoolExecutor(max_threads) as pool:
        futures = [
            pool.submit(partial(simulate, item, name, gpu)) for item, gpu in rows for name in names
        ]
        try:
            return Simulations(tuple(future.result() for future in futures))
        finally:
            pool.shutdown(cancel_futures=True)


def _listed(
    field: str, argument: str | os.PathLike[str] | Workload | Config | Iterable[object]
) -> Iterable[object]:
    """Returns an argument that may be one item or several, as several."""
    if isinstance(argument, str | os.PathLike | Workload | Config):
        return [argument]
    return items("simulate_many", field, argument)


def _scheduler(scheduler: object) -> str | MakeScheduler:
    """Returns a scheduler that can be run: the name of a shipped one, or a class."""
    if not isinstance(scheduler, str):
        if not callable(scheduler):
            raise TypeError(
                f"simulate.scheduler: a name or a class is needed, got {shown(scheduler)}"
            )
        return scheduler
    known = [row.name for row in schedulers()]
    if scheduler not in known:
        raise ValueError(
            f"scheduler: {shown(scheduler)} is unknown; there are {', '.join(known)}"
            f"{did_you_mean(scheduler, known)}"
        )
    return scheduler


def _workload(workload: object) -> Workload:
    """Returns a workload by its name, from a file, or as it is given."""
    if isinstance(workload, Workload):
        return workload
    if isinstance(workload, str | os.PathLike):
        name = os.fspath(workload)
        return load_workload(name) if name.endswith(".npz") else preset(name)
    raise TypeError(f"simulate.workload: a name, a path or a Workload, got {shown(workload)}")


def _config(wanted: object) -> Config:
    return config(wanted)  # type: ignore[arg-type]
