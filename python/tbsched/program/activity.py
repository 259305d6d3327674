"""What ran on GPUs and what host threads did, as a profile has it, in columns."""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from tbsched.program.arrays import BoolArray, HoldsArrays, Int64Array, StructuredArray

# Kinds of work. Collectives are kernels that wait for other GPUs; a migration moves pages of
# unified memory; a graph was recorded as a whole.
KERNEL, GRAPH, COLLECTIVE, COPY, MEMSET, MIGRATION = range(6)
# Kinds of what a host thread does. A step is an iteration of the program, as PyTorch marks it.
CALL, OPERATOR, ANNOTATION, FUNCTION, STEP = range(5)
UNKNOWN = -1

# Times are of the clock of the profile. ``name``: a place in ``Activity.names``. ``call``: the row
# of ``host`` that launched it.
WORK = np.dtype(
    [
        ("gpu", np.int64),
        ("kind", np.int8),
        ("name", np.int32),
        ("stream", np.int64),
        ("start_ns", np.int64),
        ("end_ns", np.int64),
        ("bytes", np.int64),
        ("call", np.int64),
    ]
)
HOST = np.dtype(
    [
        ("thread", np.int32),
        ("kind", np.int8),
        ("name", np.int32),
        ("begin_ns", np.int64),
        ("end_ns", np.int64),
        ("loads", np.bool_),  # whether the profile says that this call loaded a kernel
    ]
)
# Functions of the host in the order of a stream (cudaLaunchHostFunc); columns as of ``WORK``.
_OF_FUNCTION = ("gpu", "name", "stream", "start_ns", "end_ns", "call")
HOST_FUNCTIONS = np.dtype([(column, WORK[column]) for column in _OF_FUNCTION])
# What a profile says of a collective. ``op``, ``group``, ``type``: places in ``names``; -1:
# it does not say. ``peer``: the rank that a send goes to, or a receive comes from.
MESSAGES = np.dtype(
    [
        ("work", np.int64),  # its row of ``Activity.work``
        ("op", np.int32),
        ("group", np.int32),
        ("members", np.int32),  # the ranks of the group, as text
        ("type", np.int32),
        ("size", np.int64),  # of the group, in ranks
        ("sent", np.int64),  # elements that a rank has before
        ("received", np.int64),  # elements that a rank has afterwards
        ("peer", np.int64),
        ("number", np.int64),  # in its group, as the program counts
    ]
)
_Key: TypeAlias = Hashable
# Kernels of NCCL, NVSHMEM, MSCCL++, DeepEP, vLLM, TensorRT-LLM and PyTorch's symmetric memory.
_COLLECTIVE = re.compile(
    r"nccl[A-Z:_]|nvshmem|mscclpp|deep_ep|dpsk::ep|cross_device_reduce|(one|two)_?shot_?all_?reduce|"
    r"multimem_(all|one_shot|reduce)|allreduce_fusion",
    re.IGNORECASE,
)
# What tells apart the times that something was done, and not what was done.
_INSTANCE = re.compile(r", (seq|op_id) = \d+| at 0x[0-9a-fA-F]+")
_STEPS = re.compile(r"ProfilerStep\*?#?\s*\d*")
_VERSION = re.compile(r"(_pts[zd])?(_v\d+)?(_pts[zd])?$")


@dataclass(frozen=True, eq=False, slots=True)
class Activity(HoldsArrays):
    """What ran on GPUs, and what host threads did.

    Attributes:
        work: a row per kernel, copy, memset, migration and whole graph, as ``WORK``, of every GPU.
        host: a row per call, operator, annotation and function of a host thread, as ``HOST``.
        names: of both.
        processes: of each host thread the number of its process.
        duplicates: records that stood in the file more than once, of which one is kept.
        host_functions: a row per function of the host that ran in the order of a stream, as
            ``HOST_FUNCTIONS``. The GPU did nothing for it.
        messages: a row per collective of which the profile says what it moves, as ``MESSAGES``.
        ranks: of each GPU its rank, if the profile says it; a rank is a process that takes part in
            collectives.
        world: how many ranks there are, with those that have no profile; 0: unknown.
        uncertain_ns: of each GPU by how much its times may be off those of others; none is 0.

    Example:
        >>> program = tb.load_program("trace.json.gz")  # doctest: +SKIP
        >>> program.activity.work["end_ns"].max()  # doctest: +SKIP
        2588000
    """

    work: StructuredArray
    host: StructuredArray
    names: tuple[str, ...]
    processes: tuple[int, ...]
    duplicates: int = 0
    host_functions: StructuredArray = field(default_factory=lambda: np.zeros(0, HOST_FUNCTIONS))
    messages: StructuredArray = field(default_factory=lambda: np.zeros(0, MESSAGES))
    ranks: Mapping[int, int] = field(default_factory=dict)
    world: int = 0
    uncertain_ns: Mapping[int, int] = field(default_factory=dict)

    @property
    def first_ns(self) -> int:
        """When the first work started; 0 if there is none."""
        return int(self.work["start_ns"].min()) if len(self.work) else 0

    def later(self, ns: int) -> Activity:
        """Returns the activity on a clock that is ahead by ``ns``."""
        work, host, functions = self.work.copy(), self.host.copy(), self.host_functions.copy()
        for rows, columns in (
            (work, ("start_ns", "end_ns")),
            (host, ("begin_ns", "end_ns")),
            (functions, ("start_ns", "end_ns")),
        ):
            for column in columns:
                rows[column] += ns
        return replace(self, work=work, host=host, host_functions=functions)


def copy_name(kind: str, pinned: bool | None) -> str:
    """Returns the name of a copy or memset, by its kind and the memory of the host."""
    memory = {True: " pinned", False: " pageable", None: ""}[pinned]
    return kind if kind in ("memset", "d2d", "p2p") else f"{kind}{memory}"


@functools.lru_cache(maxsize=4096)
def function_name(name: str) -> str:
    """Returns the name of a CUDA function, without the version that profilers append."""
    return _VERSION.sub("", name)


class Times(NamedTuple):
    """A time of the clock of a profile; the end is not included."""

    since_ns: int
    until_ns: int


ALWAYS = Times(-(2**63), 2**63)


class ActivityBuilder:
    """Takes records in any order; each column is an array of numbers, so a million take 60 MB.

    Args:
        of_host: when hosts must have done something for it to be kept.
    """

    def __init__(self, of_host: Times = ALWAYS) -> None:
        self._of_host = of_host
        self.is_cut = False  # whether something of a host before that was left out
        self._names: dict[str, int] = {}
        self._threads: dict[_Key, int] = {}
        self._processes: dict[_Key, int] = {}
        self._process_of: list[int] = []
        self._work = {name: array("q") for name in WORK.names or ()}
        self._host = {name: array("q") for name in HOST.names or ()}
        self._functions = {name: array("q") for name in HOST_FUNCTIONS.names or ()}
        self._messages = {name: array("q") for name in MESSAGES.names or ()}
        self._correlation, self._node = array("q"), array("q")  # of work
        self._call_numbers, self._call_rows = array("q"), array("q")  # correlations, rows of host
        self._loading: list[int] = []  # correlations
        self._kernels: dict[str, int] = {}  # kind by kernel name

    def add_work(
        self, gpu: int, kind: int, name: str, stream: int, start_ns: int, end_ns: int,
        correlation: int, *, size: int = 0, node: int = 0,
    ) -> int:  # fmt: skip
        """Adds work that ran on a GPU, and returns its row; ``node`` is its node of a graph."""
        if kind == KERNEL:
            known = self._kernels.get(name)
            if known is None:
                known = COLLECTIVE if _COLLECTIVE.search(name) else KERNEL
                self._kernels[name] = known
            kind = known
        columns = self._work
        columns["gpu"].append(gpu)
        columns["kind"].append(kind)
        columns["name"].append(self._names.setdefault(name, len(self._names)))
        columns["stream"].append(stream)
        columns["start_ns"].append(start_ns)
        columns["end_ns"].append(max(start_ns, end_ns))
        columns["bytes"].append(size)
        self._correlation.append(correlation)
        self._node.append(node)
        return len(self._correlation) - 1

    def add_host_function(
        self, gpu: int, name: str, stream: int, start_ns: int, end_ns: int, correlation: int
    ) -> None:
        """Adds a function of the host that ran in the order of a stream."""
        name_index = self._names.setdefault(name, len(self._names))
        values = gpu, name_index, stream, start_ns, max(start_ns, end_ns), correlation
        for column, value in zip(self._functions.values(), values, strict=True):
            column.append(value)

    def add_message(
        self, work: int, *, op: str | None, group: str | None, members: str | None,
        type_: str | None, size: int, sent: int, received: int, peer: int, number: int,
    ) -> None:  # fmt: skip
        """Adds what a profile says of a collective, a row of work; None and -1: it does not."""
        values = (work, *map(self._named, (op, group, members, type_)))
        for name, value in zip(
            MESSAGES.names or (), (*values, size, sent, received, peer, number), strict=True
        ):
            self._messages[name].append(value)

    def _named(self, name: str | None) -> int:
        return UNKNOWN if name is None else self._names.setdefault(name, len(self._names))

    def add_call(
        self, name: str, process: _Key, thread: _Key, begin_ns: int, end_ns: int, correlation: int
    ) -> int:
        """Adds a call of CUDA, and returns its row of the host, or ``UNKNOWN``."""
        row = self.add_host(CALL, function_name(name), process, thread, begin_ns, end_ns)
        if correlation >= 0 and row != UNKNOWN:
            self._call_numbers.append(correlation)
            self._call_rows.append(row)
        return row

    def add_host(
        self, kind: int, name: str, process: _Key, thread: _Key, begin_ns: int, end_ns: int
    ) -> int:
        """Adds what a host thread did, and returns its row; ``UNKNOWN`` if out of the time."""
        if end_ns < self._of_host.since_ns or begin_ns >= self._of_host.until_ns:
            self.is_cut |= end_ns < self._of_host.since_ns
            return UNKNOWN
        key = (process, thread)
        thread_index = self._threads.get(key)
        if thread_index is None:
            thread_index = self._threads[key] = len(self._threads)
            self._process_of.append(self._processes.setdefault(process, len(self._processes)))
        if kind in (ANNOTATION, OPERATOR) and _STEPS.fullmatch(name):
            kind = STEP
        if " = " in name or " at 0x" in name:
            name = _INSTANCE.sub("", name)
        columns = self._host
        columns["thread"].append(thread_index)
        columns["kind"].append(kind)
        columns["name"].append(self._names.setdefault(name, len(self._names)))
        columns["begin_ns"].append(begin_ns)
        columns["end_ns"].append(max(begin_ns, end_ns))
        columns["loads"].append(0)
        return len(columns["begin_ns"]) - 1

    def loaded(self, correlation: int) -> None:
        """Marks the call with a correlation number as one that loaded a kernel, if it was added."""
        self._loading.append(correlation)

    def built(self) -> tuple[Activity, Int64Array]:
        """Returns the activity, and for each row of work in the order of adding the row that it has
        there, int64; ``UNKNOWN``: it is equal in all columns to an earlier row, which
        counts for both.
        """
        work = _rows(self._work, WORK, len(self._correlation))
        correlation = np.array(self._correlation, np.int64)
        host = _rows(self._host, HOST, len(self._host["begin_ns"]))
        calls = self._calls(host["begin_ns"])
        work["call"] = calls.of(correlation)
        loading = calls.of(np.array(self._loading, np.int64))
        host["loads"][loading[loading != UNKNOWN]] = True
        is_first = _is_first(work, correlation, np.array(self._node, np.int64))
        row = np.where(is_first, np.cumsum(is_first) - 1, UNKNOWN)
        names, processes = tuple(self._names), tuple(self._process_of)
        duplicates = int(len(work) - is_first.sum())
        functions = _rows(self._functions, HOST_FUNCTIONS, len(self._functions["gpu"]))
        functions["call"] = calls.of(functions["call"])
        messages = _rows(self._messages, MESSAGES, len(self._messages["work"]))
        messages["work"] = row[messages["work"]]
        messages = messages[messages["work"] != UNKNOWN]
        distinct = work[is_first]
        return Activity(distinct, host, names, processes, duplicates, functions, messages), row

    def _calls(self, begin_ns: Int64Array) -> _Calls:
        """Returns the outermost call of each correlation, given when host rows began."""
        correlations, rows = _column(self._call_numbers), _column(self._call_rows)
        order = np.lexsort([rows, begin_ns[rows], correlations])
        correlation, first = np.unique(correlations[order], return_index=True)
        return _Calls(correlation, rows[order[first]])


class _Calls(NamedTuple):
    """Calls by their correlation numbers, ascending, and their rows of the host, int64."""

    numbers: Int64Array
    rows: Int64Array

    def of(self, correlation: Int64Array) -> Int64Array:
        """Returns the row of the call that has each correlation number, int64; ``UNKNOWN``: none
        has."""
        if not len(self.numbers):
            return np.full(len(correlation), UNKNOWN)
        index = np.searchsorted(self.numbers, correlation)
        index = np.minimum(index, len(self.numbers) - 1)
        return np.where(self.numbers[index] == correlation, self.rows[index], UNKNOWN)


def _column(values: array[int]) -> Int64Array:
    return np.frombuffer(values, np.int64) if len(values) else np.zeros(0, np.int64)


def _rows(columns: dict[str, array[int]], kind: np.dtype[np.void], count: int) -> StructuredArray:
    """Returns columns of integers as a structured array; columns without values are 0."""
    rows = np.zeros(count, kind)
    for name, column in columns.items():
        if len(column):
            rows[name] = np.frombuffer(column, np.int64)
    return rows


def _is_first(work: StructuredArray, correlation: Int64Array, node: Int64Array) -> BoolArray:
    """Returns a mask of the rows that repeat no row before them."""
    columns = [node, correlation, *(work[name] for name in ("name", "stream", "gpu", "end_ns"))]
    columns.append(work["start_ns"])
    order = np.lexsort(columns)  # which keeps the order of equal rows
    is_first = np.ones(len(order), np.bool_)
    repeats = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        ordered = column[order]
        repeats &= ordered[1:] == ordered[:-1]
    is_first[order[1:][repeats]] = False
    return is_first
