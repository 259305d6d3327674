"""Which kernels of several GPUs are one collective, and how far the clocks of ranks are apart."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tbsched.program.activity import ANNOTATION, COLLECTIVE, UNKNOWN, Activity
from tbsched.program.arrays import HoldsArrays, Int64Array

EXCHANGE = "send_receive"  # a send and its receive; if the pair is unknown, any number of them
# What PyTorch and NCCL call operations, in the order in which they are tried.
_OPS = tuple(
    (re.compile(pattern, re.IGNORECASE), op)
    for pattern, op in (
        (r"all_?reduce", "all_reduce"), (r"all_?gather", "all_gather"),
        (r"reduce_?scatter", "reduce_scatter"), (r"all_?to_?all", "all_to_all"),
        (r"barrier", "barrier"), (r"broadcast", "broadcast"), (r"send_?rec", EXCHANGE),
        (r"i?send\b", "send"), (r"i?recv", "receive"),
        (r"reduce", "reduce"), (r"gather", "gather"), (r"scatter", "scatter"),
    )
)  # fmt: skip
_ANNOTATION = "nccl:"
_NCCL = re.compile(r"nccl(?:Dev)?Kernel_?([A-Za-z]+)")
# Those in which no rank can end before all have started; in the others a rank may be done early.
SYNCHRONIZING = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
_OF_ONE_SIZE = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
_BYTES = {
    "byte": 1, "char": 1, "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "short": 2, "half": 2, "bfloat16": 2, "float16": 2, "int": 4, "int32": 4, "float": 4,
    "float32": 4, "long": 8, "int64": 8, "double": 8, "float64": 8,
}  # fmt: skip
_SURPLUS, _SURPLUS_SHARE = 8, 0.5  # collectives at the edges of a profile that others lack
_MOST_PAIRED = 4  # ranks of a collective of which each pair is compared
_ALIKE = 2.0  # ratio of spreads up to which two ways to match are equally good
_TOGETHER_NS = 50_000  # within which kernels end that exchange bytes
_FAR_NS = 2**60
_RESOLUTION_NS = 1_000  # of the clocks of profilers
_DRIFT, _LEAST_APART_NS = 1e-4, 50_000  # by which clocks may run apart, as a share, and at least


class Kind(NamedTuple):
    """What a collective does.

    Attributes:
        op: such as ``all_reduce``; empty: unknown.
        group: the name of its process group; empty: unknown.
        bytes: that a rank has before it, or has afterwards, whichever is more; -1: unknown.
        sizes: elements before and afterwards, and their type, where all ranks must agree.
        pair: the ranks that send and receive; None: it is of the whole group.
    """

    op: str
    group: str = ""
    bytes: int = UNKNOWN
    sizes: tuple[int, int, str] | None = None
    pair: tuple[int, int] | None = None

    @property
    def words(self) -> str:
        """The collective in words, such as "all_reduce of 4,096 bytes"."""
        size = "" if self.bytes == UNKNOWN else f" of {self.bytes:,} bytes"
        group = f" in group {self.group}" if self.group else ""
        return f"{self.op or 'collective'}{size}{group}"

    def agrees(self, other: Kind) -> bool:
        """Returns whether both can be one collective on two ranks."""
        return self.op == other.op and self.sizes == other.sizes


@dataclass(frozen=True, eq=False, slots=True)
class Collectives(HoldsArrays):
    """Collectives, each with its kernels on the GPUs that took part.

    Attributes:
        row: rows of ``Activity.work``, by collective, then by GPU, int64 (kernels,).
        of: of each the number of its collective, int64 (kernels,).
        kinds: of each collective what it does.
        absent: of each collective how many ranks took part whose profile is missing, int64.
        unmatched: rows of collectives that have no counterpart, int64.
        notes: why they have none, in sentences.
        wrong: what cannot be of one run, in sentences; empty: nothing.
    """

    row: Int64Array
    of: Int64Array
    kinds: tuple[Kind, ...]
    absent: Int64Array
    unmatched: Int64Array
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def edges(self) -> Int64Array:
        """Where the rows of each collective begin, and at last where they end, int64."""
        return np.searchsorted(self.of, np.arange(len(self.kinds) + 1))


class _Own(NamedTuple):
    """A collective on one GPU."""

    row: int
    kind: Kind
    number: int
    start_ns: int
    end_ns: int


class _Group(NamedTuple):
    """Who can meet: a process group, or a pair of it.

    ``place``: those of which the profile says nothing, before all of which it says something in
    their stream, or after: the first of them may have begun before the profile. ``op``: of which it
    says nothing in any stream; groups that are unknown may differ in their order among each other.
    """

    name: str
    members: str
    size: int
    pair: tuple[int, int] | None
    place: str = ""
    op: str = ""


_BEFORE, _AMONG = "before", "among"


def op_of(name: str) -> str:
    """Returns what a collective does, by what PyTorch or NCCL calls it; empty: unknown."""
    kernel = _NCCL.search(name)
    words = kernel.group(1) if kernel else name
    return next((op for pattern, op in _OPS if pattern.search(words)), "")


def matched(activity: Activity) -> Collectives:
    """Finds the collectives of an activity of several GPUs: in order, per process group.

    Sends and receives are matched per pair of ranks. What the profile says of size and type must
    agree. Where one GPU has more collectives than another, those at the edges of its profile have
    no counterpart.
    """
    found: list[tuple[Kind, list[int], int]] = []
    unmatched: list[int] = []
    notes: list[str] = []
    wrong: list[str] = []
    groups = _by_group(activity)
    for group, sequences in groups.items():
        expected = _members(group, max(len(activity.ranks), activity.world))
        absent = max(0, expected - len(sequences))
        every = [own.row for own_all in sequences.values() for own in own_all]
        if len(sequences) < 2:
            unmatched += every
            continue
        if not _can_meet(group, sequences):
            unmatched += every
            notes.append(_unknown_pairs(group, len(every)))
            continue
        if group.place == _BEFORE:
            chosen: Mapping[int, Sequence[_Own]] | str = _from_the_end(sequences)
        else:
            complaint = _without_any(group, sequences, activity.ranks)
            chosen = complaint or _together(group, sequences, activity)
        if isinstance(chosen, str):
            (notes if group.place else wrong).append(chosen)
            unmatched += every
            continue
        for owns in zip(*chosen.values(), strict=True):
            found.append((max((own.kind for own in owns), key=lambda k: k.bytes),
                          [own.row for own in owns], absent))  # fmt: skip
        kept = {own.row for owns in chosen.values() for own in owns}
        left = [row for row in every if row not in kept]
        unmatched += left
        if left:
            notes.append(
                f"{len(left)} of {len(every)} collectives of {_called(group)} stand in one "
                "profile and not in the others, at its beginning or end: how long they waited is "
                "not known."
            )
    starts = activity.work["start_ns"]
    found.sort(key=lambda each: min(int(starts[row]) for row in each[1]))
    row = np.array([row for _, rows, _ in found for row in rows], np.int64)
    of = np.repeat(np.arange(len(found)), [len(rows) for _, rows, _ in found])
    return Collectives(
        row, of.astype(np.int64), tuple(kind for kind, _, _ in found),
        np.array([absent for _, _, absent in found], np.int64),
        np.array(sorted(unmatched), np.int64), tuple(notes), tuple(wrong),
    )  # fmt: skip


def _by_group(activity: Activity) -> dict[_Group, dict[int, list[_Own]]]:
    """Returns the collectives of each GPU in order of time, by the group that meets."""
    work, messages, names = activity.work, activity.messages, activity.names
    rows = np.flatnonzero(work["kind"] == COLLECTIVE)
    rows = rows[np.lexsort([work["start_ns"][rows], work["gpu"][rows]])]
    said = dict(zip(messages["work"].tolist(), range(len(messages)), strict=True))
    found: dict[_Group, dict[int, list[_Own]]] = defaultdict(lambda: defaultdict(list))
    known: dict[tuple[object, ...], tuple[_Group, Kind]] = {}
    fields = [messages[name].tolist() for name in messages.dtype.names or ()]
    columns = [
        work[name][rows].tolist() for name in ("gpu", "name", "start_ns", "end_ns", "stream")
    ]
    streams: dict[tuple[int, int], _Group] = {}  # of which the profile says something
    bare: list[tuple[tuple[int, int], _Own, bool]] = []
    around = _annotations(activity, rows).tolist()
    each = zip(rows.tolist(), around, *columns, strict=True)
    for row, annotation, gpu, name, start_ns, end_ns, stream in each:
        place = said.get(row, UNKNOWN)
        values = tuple(field[place] for field in fields[1:]) if place != UNKNOWN else ()
        key = (name, activity.ranks.get(gpu, UNKNOWN), values[:-1] or annotation)
        if key not in known:
            told = "" if annotation == UNKNOWN else names[annotation]
            known[key] = _kind_of(key[1], names[name], told, names, values)
        group, kind = known[key]
        own = _Own(row, kind, values[-1] if values else UNKNOWN, start_ns, end_ns)
        if values:
            streams.setdefault((gpu, stream), group._replace(pair=None))
            found[group][gpu].append(own)
        else:
            bare.append(((gpu, stream), own, (gpu, stream) in streams))
    for (gpu, stream), own, is_among in bare:
        # A communicator has a stream of its own: what came before in it was of the same ranks.
        group = streams.get((gpu, stream), _Group("", "", UNKNOWN, None, op=own.kind.op))
        if (gpu, stream) in streams:
            group = group._replace(place=_AMONG if is_among else _BEFORE)
        found[group][gpu].append(own)
    return found


def _annotations(activity: Activity, rows: Int64Array) -> Int64Array:
    """Returns for each collective PyTorch's annotation around its launch, or ``UNKNOWN``."""
    host, call = activity.host, activity.work["call"][rows]
    found = np.full(len(rows), UNKNOWN)
    is_ours = np.array([name.startswith(_ANNOTATION) for name in activity.names] or [False])
    marked = np.flatnonzero((host["kind"] == ANNOTATION) & is_ours[host["name"]])
    if not len(marked):
        return found
    for thread in np.unique(host["thread"][marked]).tolist():
        own = marked[host["thread"][marked] == thread]
        own = own[np.argsort(host["begin_ns"][own], kind="stable")]
        mine = np.flatnonzero((call != UNKNOWN) & (host["thread"][call] == thread))
        at = host["begin_ns"][call[mine]]
        place = np.searchsorted(host["begin_ns"][own], at, side="right") - 1
        is_in = (place >= 0) & (host["end_ns"][own[np.maximum(place, 0)]] > at)
        found[mine[is_in]] = host["name"][own[place[is_in]]]
    return found


def _kind_of(
    rank: int, kernel: str, annotation: str, names: Sequence[str], values: tuple[int, ...]
) -> tuple[_Group, Kind]:
    """Returns the group that meets in a collective, and what the collective does."""
    if not values:
        return _Group("", "", UNKNOWN, None), Kind(op_of(annotation) or op_of(kernel))

    def text(place: int) -> str:
        return "" if place == UNKNOWN else names[place]

    op_, group, members, type_, size, sent, received, peer, _ = values
    op = op_of(text(op_)) or op_of(kernel)
    each = _BYTES.get(text(type_).lower(), UNKNOWN)
    most = max(sent, received)
    size_bytes = most * each if each > 0 and most >= 0 else UNKNOWN
    pair = None
    if peer == UNKNOWN and len(two := set(_listed(text(members)) or ())) == 2 and rank in two:
        (peer,) = two - {rank}
    if op in ("send", "receive") and peer != UNKNOWN and rank != UNKNOWN:
        pair = (rank, peer) if op == "send" else (peer, rank)
        op = EXCHANGE
    sizes = (sent, received, text(type_)) if op in _OF_ONE_SIZE else None
    kind = Kind(op, text(group), size_bytes, sizes, pair)
    return _Group(text(group), text(members), size, pair), kind


def _members(group: _Group, world: int) -> int:
    """Returns how many ranks a group has; ``world`` if the profile does not say it."""
    if group.pair is not None:
        return len(set(group.pair))
    listed = _listed(group.members)
    return max(group.size, len(listed or ()), 0) or world


def _listed(members: str) -> list[int] | None:
    """The ranks that a list in a profile names; None: it names not all of them."""
    if not members or "..." in members:
        return None
    return [int(number) for number in re.findall(r"\d{1,18}", members)]


def _can_meet(group: _Group, sequences: Mapping[int, Sequence[_Own]]) -> bool:
    """Returns whether the order tells what meets: not sends and receives of unknown pairs.

    A send may end long before its receive starts, so their order differs from rank to rank. Two
    ranks that each send and receive in one kernel end it together: then the order tells.
    """
    if group.pair is not None:
        return True
    ops = {own.kind.op for owns in sequences.values() for own in owns}
    if not ops & {EXCHANGE, "send", "receive"}:
        return True
    if len(sequences) != 2 or ops != {EXCHANGE} or group.place:
        return False
    one, other = sorted(sequences.values(), key=len)
    first = _first_place(one, other)
    if first is None:
        return False
    apart = [a.end_ns - b.end_ns for a, b in zip(one, other[first:], strict=False)]
    off = np.abs(np.array(apart) - np.median(apart))
    return len(apart) > 1 and float(np.quantile(off, 0.9)) <= _TOGETHER_NS


def _unknown_pairs(group: _Group, count: int) -> str:
    return (
        f"{count} sends and receives of {_called(group)} do not say which ranks they are of: how "
        "long they waited is not known."
    )


def _without_any(
    group: _Group, sequences: Mapping[int, Sequence[_Own]], ranks: Mapping[int, int]
) -> str | None:
    """Returns a sentence about a rank that has no collective of its group, or None."""
    listed = group.pair or _listed(group.members)
    if listed is None:
        return None
    lacking = sorted(rank for gpu, rank in ranks.items() if rank in listed and gpu not in sequences)
    if not lacking:
        return None
    count = max(len(owns) for owns in sequences.values())
    return (
        f"rank {lacking[0]} has none of the {count} collectives of {_called(group)}, of which it "
        "is a member: are the profiles of one run?"
    )


def _called(group: _Group) -> str:
    if group.pair is not None:
        return f"rank {group.pair[0]} to rank {group.pair[1]}"
    return f"group {group.name}" if group.name else f"all ranks ({group.op or 'unknown'})"


def gpu_word(gpu: int, ranks: Mapping[int, int]) -> str:
    """Returns "rank 3", with the GPU if it has several, or "GPU 3" if the rank is unknown."""
    if gpu not in ranks:
        return f"GPU {gpu}"
    has_several = sum(rank == ranks[gpu] for rank in ranks.values()) > 1
    return f"rank {ranks[gpu]} (GPU {gpu})" if has_several else f"rank {ranks[gpu]}"


def _together(
    group: _Group, sequences: Mapping[int, Sequence[_Own]], activity: Activity
) -> Mapping[int, Sequence[_Own]] | str:
    """Returns as many collectives of each GPU that are the same ones, or what is wrong."""
    numbered = _numbered(sequences)
    if numbered is not None:
        common = set.intersection(*(set(own) for own in numbered.values()))
        sequences = {gpu: [own[n] for n in sorted(common)] for gpu, own in numbered.items()}
    base_gpu = min(sequences, key=lambda gpu: len(sequences[gpu]))
    base = sequences[base_gpu]
    first, count = {base_gpu: 0}, len(base)
    for gpu, own in sequences.items():
        if gpu == base_gpu:
            continue
        found = _first_place(base, own)
        if isinstance(found, int):
            first[gpu] = found
            continue
        one, other = (gpu_word(each, activity.ranks) for each in (base_gpu, gpu))
        return _differ(group, (one, base), (other, own))
    if not count:
        return f"the ranks have no collective of {_called(group)} in common: are they of one run?"
    return {gpu: own[first[gpu] : first[gpu] + count] for gpu, own in sequences.items()}


def _from_the_end(sequences: Mapping[int, Sequence[_Own]]) -> Mapping[int, Sequence[_Own]]:
    """Returns the last collectives of each GPU, as many as are the same on all GPUs."""
    count = 0
    for owns in zip(*(reversed(own) for own in sequences.values()), strict=False):
        if any(own.kind.op != owns[0].kind.op for own in owns):
            break
        count += 1
    return {gpu: own[len(own) - count :] for gpu, own in sequences.items()}


def _numbered(
    sequences: Mapping[int, Sequence[_Own]],
) -> dict[int, dict[int, _Own]] | None:
    """Returns collectives by GPU and their number; None: some have no number of their own."""
    found = {gpu: {own.number: own for own in owns} for gpu, owns in sequences.items()}
    for gpu, by_number in found.items():
        if UNKNOWN in by_number or len(by_number) != len(sequences[gpu]):
            return None
    return found


def _first_place(base: Sequence[_Own], own: Sequence[_Own]) -> int | None:
    """Returns where a longer profile's collectives begin to match ``base``, or None."""
    surplus = len(own) - len(base)
    if surplus > max(_SURPLUS, _SURPLUS_SHARE * len(base)):
        return None
    fitting = [
        place
        for place in range(surplus + 1)
        if all(a.kind.agrees(b.kind) for a, b in zip(base, own[place:], strict=False))
    ]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    ends = np.array([each.end_ns for each in base])
    apart = {
        place: ends - np.array([each.end_ns for each in own[place : place + len(base)]])
        for place in fitting
    }
    spread = {
        place: float(np.median(np.abs(each - np.median(each)))) for place, each in apart.items()
    }
    least = min(spread.values()) * _ALIKE + 1000
    near = [place for place in fitting if spread[place] <= least]
    return min(near, key=lambda place: abs(float(np.median(apart[place]))))


def _differ(
    group: _Group, one: tuple[str, Sequence[_Own]], other: tuple[str, Sequence[_Own]]
) -> str:
    """Returns a sentence about the first difference of two ranks' collectives."""
    for place, (a, b) in enumerate(zip(one[1], other[1], strict=False)):
        if not a.kind.agrees(b.kind):
            return (
                f"collective {place} of {_called(group)} is {_said(a.kind)} on {one[0]} and "
                f"{_said(b.kind)} on {other[0]}: are the profiles of one run?"
            )
    return (
        f"{one[0]} has {len(one[1])} collectives of {_called(group)} and {other[0]} has "
        f"{len(other[1])}: are the profiles of one run, and of the same steps?"
    )


def _said(kind: Kind) -> str:
    if kind.sizes is None:
        return kind.op or "unknown"
    sent, received, type_ = kind.sizes
    return f"{kind.op} of {sent:,} to {received:,} {type_}".strip()


class Clock(NamedTuple):
    """How the clock of a rank stands to that of the first one.

    Attributes:
        added_ns: what was added to its times.
        uncertain_ns: by how much that may be wrong; -1: nothing tells.
    """

    added_ns: int
    uncertain_ns: int


class Contradiction(NamedTuple):
    """Two sources whose collectives no clocks bring together, and by how much that fails."""

    one: int
    other: int
    ns: int


def clocks_of(
    activity: Activity, collectives: Collectives, sources: Mapping[int, int]
) -> tuple[list[Clock], Contradiction | None]:
    """Returns of each source the clock that brings its collectives together, and what is wrong.

    A collective of all ranks cannot end on one before it started on another, nor a receive before
    its send: that bounds the difference of two clocks. Within the bounds, the kernels of a
    collective end nearly together, and so does a receive that waited with its send.

    Args:
        activity: of all sources, each on its own clock.
        collectives: its collectives.
        sources: of each GPU the number of its source; GPUs of a source have one clock.
    """
    count = max(sources.values()) + 1
    apart = _apart(activity, collectives, sources)
    clocks: dict[int, Clock] = {0: Clock(0, 0)}
    wrong: Contradiction | None = None
    # From the first one on, over the pairs with most collectives in common.
    while len(clocks) < count:
        reached = [
            (len(each.ends) + len(each.least) + len(each.most), one, other)
            for (one, other), each in apart.items()
            if one in clocks and other not in clocks
        ]
        if not reached:
            left = next(source for source in range(count) if source not in clocks)
            clocks[left] = Clock(0, UNKNOWN)
            continue
        _, one, other = max(reached, key=lambda each: (each[0], -each[2]))
        added, uncertain, off_ns = apart[one, other].clock()
        before = clocks[one]
        if before.uncertain_ns == UNKNOWN:
            uncertain = UNKNOWN
        else:
            uncertain += before.uncertain_ns
        clocks[other] = Clock(before.added_ns + added, uncertain)
        if off_ns and wrong is None:
            wrong = Contradiction(one, other, off_ns)
    return [clocks[source] for source in range(count)], wrong


class _Apart(NamedTuple):
    """Differences of two clocks that collectives give: the first one's time less the other's.

    Attributes:
        ends: of what ended nearly together, int64.
        least, most: bounds by what started before something ended, int64.
        span_ns: how long the profiles are.
    """

    ends: list[int]
    least: list[int]
    most: list[int]
    span_ns: int

    def clock(self) -> tuple[int, int, int]:
        """Returns what to add to the second clock, how uncertain that is, and what contradicts."""
        low, high = max(self.least, default=-_FAR_NS), min(self.most, default=_FAR_NS)
        # Clocks of one host are equal; only ends that agree are better known than that.
        added = int(np.median(self.ends)) if self.ends else min(max(0, low), high)
        off = np.abs(np.array(self.ends or [0], np.int64) - added)
        spread = int(np.quantile(off, 0.9)) if len(self.ends) > 1 else _FAR_NS
        if low <= high:
            added = min(max(added, low), high)
            # A single collective says no more than its bounds.
            spread = min(spread, max(high - added, added - low))
            return added, max(spread, _RESOLUTION_NS) if spread < _FAR_NS // 2 else UNKNOWN, 0
        drift = low - high
        allowed = max(_LEAST_APART_NS, _DRIFT * self.span_ns)
        return added, max(min(spread, self.span_ns), drift), drift if drift > allowed else 0

    def reversed(self) -> _Apart:
        """Returns the bounds of the difference with the two clocks exchanged."""
        ends, least, most = ([-ns for ns in column] for column in self[:3])
        return _Apart(ends, most, least, self.span_ns)


def _apart(
    activity: Activity, collectives: Collectives, sources: Mapping[int, int]
) -> dict[tuple[int, int], _Apart]:
    """Returns how far the clocks of each pair of sources are apart, by collectives."""
    work = activity.work
    span_ns = max(
        int(own["end_ns"].max() - own["start_ns"].min())
        for own in (work[np.isin(work["gpu"], [gpu])] for gpu in sources)
        if len(own)
    )
    result: dict[tuple[int, int], _Apart] = {}
    gpus, starts, ends = (
        work[name][collectives.row].tolist() for name in ("gpu", "start_ns", "end_ns")
    )
    edges = collectives.edges.tolist()
    for number, kind in enumerate(collectives.kinds):
        if kind.op not in SYNCHRONIZING and kind.op != EXCHANGE:
            continue
        for one, other in _pairs(edges[number], edges[number + 1]):
            a, b = sources[gpus[one]], sources[gpus[other]]
            if a == b:
                continue
            if a > b:
                (a, one), (b, other) = (b, other), (a, one)
            each = result.setdefault((a, b), _Apart([], [], [], span_ns))
            is_first_sender = _sends(kind, gpus[one], activity.ranks)
            if is_first_sender is not True:  # the first one needs what the other one started
                each.most.append(ends[one] - starts[other])
            if is_first_sender is not False:
                each.least.append(starts[one] - ends[other])
            if is_first_sender is None or _received_late(
                (starts[one], ends[one]), (starts[other], ends[other]), is_first_sender
            ):
                each.ends.append(ends[one] - ends[other])
    return result | {(b, a): each.reversed() for (a, b), each in result.items()}


def _sends(kind: Kind, gpu: int, ranks: Mapping[int, int]) -> bool | None:
    """Returns whether a GPU sends, of a pair; None: all of them send and receive."""
    return None if kind.pair is None else ranks.get(gpu) == kind.pair[0]


def _received_late(one: tuple[int, int], other: tuple[int, int], first_sends: bool) -> bool:
    """Returns whether a receive took so much longer than its send that it waited for it."""
    sent, received = (one, other) if first_sends else (other, one)
    return received[1] - received[0] > _ALIKE * (sent[1] - sent[0])


def _pairs(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yields each pair of places once; of many ranks only those with the first one."""
    if last - first <= _MOST_PAIRED:
        for one in range(first, last):
            yield from ((one, other) for other in range(one + 1, last))
    else:
        yield from ((first, other) for other in range(first + 1, last))
