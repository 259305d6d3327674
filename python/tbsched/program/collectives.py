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
_MAX_PAIRED = 4  # ranks of a collective of which each pair is compared
_ALIKE = 2.0  # ratio of spreads up to which two ways to match are equally good
_TOGETHER_NS = 50_000  # within which kernels end that exchange bytes
_FAR_NS = 2**60
_RESOLUTION_NS = 1_000  # of the clocks of profilers
_DRIFT, _MIN_DRIFT_NS = 1e-4, 50_000  # by which clocks may run apart, as a share, and at least
# Those in which all ranks move the same bytes end nearly together. Ends are far apart from this
# share of the shorter kernel on, and from this time on.
_ENDING_TOGETHER = frozenset({"all_reduce", "all_gather", "reduce_scatter", "barrier"})
_FAR_SHARE, _MIN_FAR_NS = 0.5, 200_000


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


class _OnGpu(NamedTuple):
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
    """Returns the collectives of an activity of several GPUs: which kernels of theirs are the same
    collective. They are matched by order, per process group.

    Sends and receives are matched per pair of ranks. What the profile says of size and type must
    agree. Where one GPU has more collectives than another, those at the edges of its profile have
    no counterpart.
    """
    collectives: list[tuple[Kind, list[int], int]] = []
    unmatched: list[int] = []
    notes: list[str] = []
    wrong: list[str] = []
    groups = _by_group(activity)
    for group, sequences in groups.items():
        expected = _members(group, max(len(activity.ranks), activity.world))
        absent = max(0, expected - len(sequences))
        every = [on_gpu.row for sequence in sequences.values() for on_gpu in sequence]
        if len(sequences) < 2:
            unmatched += every
            continue
        if not _can_meet(group, sequences):
            unmatched += every
            notes.append(_unknown_pairs(group, len(every)))
            continue
        if group.place == _BEFORE:
            chosen: Mapping[int, Sequence[_OnGpu]] | str = _common_tail(sequences)
        else:
            complaint = _without_any(group, sequences, activity.ranks)
            chosen = complaint or _aligned(group, sequences, activity)
        if isinstance(chosen, str):
            (notes if group.place else wrong).append(chosen)
            unmatched += every
            continue
        for owns in zip(*chosen.values(), strict=True):
            collectives.append((max((on_gpu.kind for on_gpu in owns), key=lambda k: k.bytes),
                          [on_gpu.row for on_gpu in owns], absent))  # fmt: skip
        matched_rows = {on_gpu.row for owns in chosen.values() for on_gpu in owns}
        unmatched_rows = [row for row in every if row not in matched_rows]
        unmatched += unmatched_rows
        if unmatched_rows:
            notes.append(
                f"{len(unmatched_rows)} of {len(every)} collectives of {_group_words(group)} stand "
                "in one profile and not in the others, at its beginning or end "
                f"({_counts(sequences, activity.ranks)}): how long they waited is not known."
            )
    starts = activity.work["start_ns"]
    collectives.sort(key=lambda collective: min(int(starts[row]) for row in collective[1]))
    row = np.array([row for _, rows, _ in collectives for row in rows], np.int64)
    collective_of_row = np.repeat(
        np.arange(len(collectives)), [len(rows) for _, rows, _ in collectives]
    )
    return Collectives(
        row, collective_of_row.astype(np.int64), tuple(kind for kind, _, _ in collectives),
        np.array([absent for _, _, absent in collectives], np.int64),
        np.array(sorted(unmatched), np.int64), tuple(notes), tuple(wrong),
    )  # fmt: skip


def _by_group(activity: Activity) -> dict[_Group, dict[int, list[_OnGpu]]]:
    """Returns the collectives of each GPU in order of time, by the group that meets."""
    work, messages, names = activity.work, activity.messages, activity.names
    rows = np.flatnonzero(work["kind"] == COLLECTIVE)
    rows = rows[np.lexsort([work["start_ns"][rows], work["gpu"][rows]])]
    message_of_row = dict(zip(messages["work"].tolist(), range(len(messages)), strict=True))
    by_group: dict[_Group, dict[int, list[_OnGpu]]] = defaultdict(lambda: defaultdict(list))
    known: dict[tuple[object, ...], tuple[_Group, Kind]] = {}
    fields = [messages[name].tolist() for name in messages.dtype.names or ()]
    columns = [
        work[name][rows].tolist() for name in ("gpu", "name", "start_ns", "end_ns", "stream")
    ]
    streams: dict[tuple[int, int], _Group] = {}  # of which the profile says something
    bare: list[tuple[tuple[int, int], _OnGpu, bool]] = []
    around = _annotations(activity, rows).tolist()
    work_rows = zip(rows.tolist(), around, *columns, strict=True)
    for row, annotation, gpu, name, start_ns, end_ns, stream in work_rows:
        message = message_of_row.get(row, UNKNOWN)
        values = tuple(field[message] for field in fields[1:]) if message != UNKNOWN else ()
        key = (name, activity.ranks.get(gpu, UNKNOWN), values[:-1] or annotation)
        if key not in known:
            annotation_name = "" if annotation == UNKNOWN else names[annotation]
            known[key] = _kind_of(key[1], names[name], annotation_name, names, values)
        group, kind = known[key]
        on_gpu = _OnGpu(row, kind, values[-1] if values else UNKNOWN, start_ns, end_ns)
        if values:
            streams.setdefault((gpu, stream), group._replace(pair=None))
            by_group[group][gpu].append(on_gpu)
        else:
            bare.append(((gpu, stream), on_gpu, (gpu, stream) in streams))
    for (gpu, stream), on_gpu, is_among in bare:
        # A communicator has a stream of its own: what came before in it was of the same ranks.
        group = streams.get((gpu, stream), _Group("", "", UNKNOWN, None, op=on_gpu.kind.op))
        if (gpu, stream) in streams:
            group = group._replace(place=_AMONG if is_among else _BEFORE)
        by_group[group][gpu].append(on_gpu)
    return by_group


def _annotations(activity: Activity, rows: Int64Array) -> Int64Array:
    """Returns, for each collective, the row of PyTorch's annotation around its launch, int64;
    ``UNKNOWN``: none."""
    host, call = activity.host, activity.work["call"][rows]
    annotation_names = np.full(len(rows), UNKNOWN)
    is_ours = np.array([name.startswith(_ANNOTATION) for name in activity.names] or [False])
    marked = np.flatnonzero((host["kind"] == ANNOTATION) & is_ours[host["name"]])
    if not len(marked):
        return annotation_names
    for thread in np.unique(host["thread"][marked]).tolist():
        on_thread = marked[host["thread"][marked] == thread]
        on_thread = on_thread[np.argsort(host["begin_ns"][on_thread], kind="stable")]
        of_thread = np.flatnonzero((call != UNKNOWN) & (host["thread"][call] == thread))
        at = host["begin_ns"][call[of_thread]]
        position = np.searchsorted(host["begin_ns"][on_thread], at, side="right") - 1
        is_in = (position >= 0) & (host["end_ns"][on_thread[np.maximum(position, 0)]] > at)
        annotation_names[of_thread[is_in]] = host["name"][on_thread[position[is_in]]]
    return annotation_names


def _kind_of(
    rank: int, kernel: str, annotation: str, names: Sequence[str], values: tuple[int, ...]
) -> tuple[_Group, Kind]:
    """Returns the group that meets in a collective, and what the collective does."""
    if not values:
        return _Group("", "", UNKNOWN, None), Kind(op_of(annotation) or op_of(kernel))

    def text(index: int) -> str:
        return "" if index == UNKNOWN else names[index]

    op_, group, members, type_, size, sent, received, peer, _ = values
    op = op_of(text(op_)) or op_of(kernel)
    bytes_per_element = _BYTES.get(text(type_).lower(), UNKNOWN)
    elements = max(sent, received)
    size_bytes = (
        elements * bytes_per_element if bytes_per_element > 0 and elements >= 0 else UNKNOWN
    )
    pair = None
    if (
        peer == UNKNOWN
        and len(pair_members := set(_ranks_listed(text(members)) or ())) == 2
        and rank in pair_members
    ):
        (peer,) = pair_members - {rank}
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
    listed = _ranks_listed(group.members)
    return max(group.size, len(listed or ()), 0) or world


def _ranks_listed(members: str) -> list[int] | None:
    """Returns the ranks that a list in a profile names; None: it does not name all of them."""
    if not members or "..." in members:
        return None
    return [int(rank) for rank in re.findall(r"\d{1,18}", members)]


def _can_meet(group: _Group, sequences: Mapping[int, Sequence[_OnGpu]]) -> bool:
    """Returns whether collectives of a group can be matched by their order. Sends and receives
    whose ranks are unknown cannot.

    A send may end long before its receive starts, so their order differs from rank to rank. Two
    ranks that each send and receive in one kernel end it together: then the order tells.
    """
    if group.pair is not None:
        return True
    ops = {on_gpu.kind.op for owns in sequences.values() for on_gpu in owns}
    if not ops & {EXCHANGE, "send", "receive"}:
        return True
    if len(sequences) != 2 or ops != {EXCHANGE} or group.place:
        return False
    shorter, longer = sorted(sequences.values(), key=len)
    first = _first_match(shorter, longer)
    if first is None:
        return False
    apart = [a.end_ns - b.end_ns for a, b in zip(shorter, longer[first:], strict=False)]
    deviation = np.abs(np.array(apart) - np.median(apart))
    return len(apart) > 1 and float(np.quantile(deviation, 0.9)) <= _TOGETHER_NS


def _unknown_pairs(group: _Group, count: int) -> str:
    """Returns a sentence: how many sends and receives do not say which ranks they are of."""
    return (
        f"{count} sends and receives of {_group_words(group)} do not say which ranks they are of: "
        "how long they waited is not known."
    )


def _without_any(
    group: _Group, sequences: Mapping[int, Sequence[_OnGpu]], ranks: Mapping[int, int]
) -> str | None:
    """Returns a sentence about a rank that has no collective of its group, or None."""
    listed = group.pair or _ranks_listed(group.members)
    if listed is None:
        return None
    lacking = sorted(rank for gpu, rank in ranks.items() if rank in listed and gpu not in sequences)
    if not lacking:
        return None
    count = max(len(owns) for owns in sequences.values())
    return (
        f"rank {lacking[0]} has none of the {count} collectives of {_group_words(group)}, of which "
        "it is a member: are the profiles of one run?"
    )


def _counts(sequences: Mapping[int, Sequence[_OnGpu]], ranks: Mapping[int, int]) -> str:
    """Returns which rank has fewest collectives of a group, and which has most, in words."""
    by_count = sorted(sequences, key=lambda gpu: (len(sequences[gpu]), gpu))
    return ", ".join(
        f"{gpu_word(gpu, ranks)} has {len(sequences[gpu])}" for gpu in (by_count[0], by_count[-1])
    )


def _group_words(group: _Group) -> str:
    if group.pair is not None:
        return f"rank {group.pair[0]} to rank {group.pair[1]}"
    return f"group {group.name}" if group.name else f"all ranks ({group.op or 'unknown'})"


def gpu_word(gpu: int, ranks: Mapping[int, int]) -> str:
    """Returns "rank 3", with the GPU if it has several, or "GPU 3" if the rank is unknown."""
    if gpu not in ranks:
        return f"GPU {gpu}"
    has_several = sum(rank == ranks[gpu] for rank in ranks.values()) > 1
    return f"rank {ranks[gpu]} (GPU {gpu})" if has_several else f"rank {ranks[gpu]}"


def _aligned(
    group: _Group, sequences: Mapping[int, Sequence[_OnGpu]], activity: Activity
) -> Mapping[int, Sequence[_OnGpu]] | str:
    """Returns, for each GPU, its collectives without those at the edges of the profiles that others
    lack, so that the n-th of each are the same one; or a sentence that says what is wrong."""
    numbered = _numbered(sequences)
    if numbered is not None:
        common = set.intersection(*(set(sequence) for sequence in numbered.values()))
        sequences = {
            gpu: [sequence[n] for n in sorted(common)] for gpu, sequence in numbered.items()
        }
    base_gpu = min(sequences, key=lambda gpu: len(sequences[gpu]))
    base = sequences[base_gpu]
    first, count = {base_gpu: 0}, len(base)
    for gpu, sequence in sequences.items():
        if gpu == base_gpu:
            continue
        match = _first_match(base, sequence)
        if isinstance(match, int):
            first[gpu] = match
            continue
        base_word, word = (gpu_word(some_gpu, activity.ranks) for some_gpu in (base_gpu, gpu))
        return _differ(group, (base_word, base), (word, sequence))
    if not count:
        return (
            f"the ranks have no collective of {_group_words(group)} in common: are they of one run?"
        )
    return {gpu: sequence[first[gpu] : first[gpu] + count] for gpu, sequence in sequences.items()}


def _common_tail(sequences: Mapping[int, Sequence[_OnGpu]]) -> Mapping[int, Sequence[_OnGpu]]:
    """Returns the last collectives of each GPU, as many as are the same on all GPUs."""
    count = 0
    for owns in zip(*(reversed(sequence) for sequence in sequences.values()), strict=False):
        if any(on_gpu.kind.op != owns[0].kind.op for on_gpu in owns):
            break
        count += 1
    return {gpu: sequence[len(sequence) - count :] for gpu, sequence in sequences.items()}


def _numbered(
    sequences: Mapping[int, Sequence[_OnGpu]],
) -> dict[int, dict[int, _OnGpu]] | None:
    """Returns collectives by GPU and their number; None: some have no number of their own."""
    by_gpu = {gpu: {on_gpu.number: on_gpu for on_gpu in owns} for gpu, owns in sequences.items()}
    for gpu, by_number in by_gpu.items():
        if UNKNOWN in by_number or len(by_number) != len(sequences[gpu]):
            return None
    return by_gpu


def _first_match(base: Sequence[_OnGpu], longer: Sequence[_OnGpu]) -> int | None:
    """Returns the index in a longer profile's collectives from which on they match ``base``; None:
    they do not."""
    surplus = len(longer) - len(base)
    if surplus > max(_SURPLUS, _SURPLUS_SHARE * len(base)):
        return None
    fitting = [
        start
        for start in range(surplus + 1)
        if all(a.kind.agrees(b.kind) for a, b in zip(base, longer[start:], strict=False))
    ]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    ends = np.array([collective.end_ns for collective in base])
    apart = {
        start: ends
        - np.array([collective.end_ns for collective in longer[start : start + len(base)]])
        for start in fitting
    }
    spread = {
        start: float(np.median(np.abs(differences - np.median(differences))))
        for start, differences in apart.items()
    }
    max_spread = min(spread.values()) * _ALIKE + 1000
    near = [start for start in fitting if spread[start] <= max_spread]
    return min(near, key=lambda start: abs(float(np.median(apart[start]))))


def _differ(
    group: _Group, one: tuple[str, Sequence[_OnGpu]], other: tuple[str, Sequence[_OnGpu]]
) -> str:
    """Returns a sentence about the first difference of two ranks' collectives."""
    for index, (a, b) in enumerate(zip(one[1], other[1], strict=False)):
        if not a.kind.agrees(b.kind):
            return (
                f"collective {index} of {_group_words(group)} is {_op_words(a.kind)} on {one[0]} "
                f"and {_op_words(b.kind)} on {other[0]}: are the profiles of one run?"
            )
    return (
        f"{one[0]} has {len(one[1])} collectives of {_group_words(group)} and {other[0]} has "
        f"{len(other[1])}: are the profiles of one run, and of the same steps?"
    )


def _op_words(kind: Kind) -> str:
    """Returns what a collective does, with its sizes if they are known, in words."""
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
    """Two sources whose collectives no clocks bring together, and by how much that fails.

    Attributes:
        one, other: numbers of the sources.
        ns: by how much their bounds contradict each other, or how far apart most collectives end.
        collective: the number of the one that ends farthest apart; None: bounds contradict.
    """

    one: int
    other: int
    ns: int
    collective: int | None = None


def clocks_of(
    activity: Activity, collectives: Collectives, sources: Mapping[int, int]
) -> tuple[list[Clock], Contradiction | None]:
    """Returns the clock of each source, by which the collectives of all come together; and the
    first contradiction between two of them, or None.

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
            (len(bounds.ends) + len(bounds.least) + len(bounds.most), one, other)
            for (one, other), bounds in apart.items()
            if one in clocks and other not in clocks
        ]
        if not reached:
            unreached = next(source for source in range(count) if source not in clocks)
            clocks[unreached] = Clock(0, UNKNOWN)
            continue
        _, one, other = max(reached, key=lambda bounds: (bounds[0], -bounds[2]))
        added, uncertain, off_ns = apart[one, other].clock()
        before = clocks[one]
        if before.uncertain_ns == UNKNOWN:
            uncertain = UNKNOWN
        else:
            uncertain += before.uncertain_ns
        clocks[other] = Clock(before.added_ns + added, uncertain)
        if wrong is None and off_ns:
            wrong = Contradiction(one, other, off_ns)
        elif wrong is None and (farthest := apart[one, other].farthest(added)) is not None:
            wrong = Contradiction(one, other, abs(farthest.ns - added), farthest.collective)
    return [clocks[source] for source in range(count)], wrong


class _End(NamedTuple):
    """The end of a collective on two sources.

    Attributes:
        ns: on the first one's clock less on the other's.
        shorter_ns: how long its shorter kernel took.
        collective: its number.
        together: whether it must end nearly together.
    """

    ns: int
    shorter_ns: int
    collective: int
    together: bool


class _Apart(NamedTuple):
    """Differences of two clocks that collectives give: the first one's time less the other's.

    Attributes:
        ends: of what ended nearly together.
        least, most: bounds by what started before something ended, in ns.
        span_ns: how long the profiles are.
    """

    ends: list[_End]
    least: list[int]
    most: list[int]
    span_ns: int

    def clock(self) -> tuple[int, int, int]:
        """Returns what to add to the second clock to get the first, in ns, how uncertain that is in
        ns, and by how many ns the bounds contradict each other.

        The uncertainty is ``UNKNOWN`` if there is no bound. Bounds that differ by no more than
        clocks drift count as 0.
        """
        low, high = max(self.least, default=-_FAR_NS), min(self.most, default=_FAR_NS)
        ends = np.array([end.ns for end in self.ends], np.int64)
        # Clocks of one host are equal; only ends that agree are better known than that.
        added = int(np.median(ends)) if len(ends) else min(max(0, low), high)
        if low <= high:
            added = min(max(added, low), high)
            # A single collective says no more than its bounds.
            spread = _spread(ends, added) if len(ends) > 1 else max(high - added, added - low)
            return added, max(spread, _RESOLUTION_NS) if spread < _FAR_NS // 2 else UNKNOWN, 0
        spread = _spread(ends, added) if len(ends) > 1 else self.span_ns
        drift = low - high
        off = drift if drift > self._drift_ns else 0
        return added, max(min(spread, self.span_ns), drift), off

    def farthest(self, added: int) -> _End | None:
        """Returns the collective whose ends are farthest apart once ``added`` ns are added to the
        second clock, if most are so far apart that they cannot be of one run; None: they are not.
        """
        together = [end for end in self.ends if end.together]
        least_ns = max(_MIN_FAR_NS, self._drift_ns)
        far = [
            end
            for end in together
            if abs(end.ns - added) > max(least_ns, _FAR_SHARE * end.shorter_ns)
        ]
        if 2 * len(far) <= len(together):
            return None
        return max(far, key=lambda end: abs(end.ns - added))

    @property
    def _drift_ns(self) -> float:
        """By how many ns clocks may run apart in the profiles."""
        return max(_MIN_DRIFT_NS, _DRIFT * self.span_ns)

    def reversed(self) -> _Apart:
        """Returns the bounds of the difference with the two clocks exchanged."""
        ends = [end._replace(ns=-end.ns) for end in self.ends]
        return _Apart(ends, [-ns for ns in self.most], [-ns for ns in self.least], self.span_ns)


def _spread(ends: Int64Array, added: int) -> int:
    """Returns how far most ends are from ``added``, in ns."""
    return int(np.quantile(np.abs(ends - added), 0.9))


def _apart(
    activity: Activity, collectives: Collectives, sources: Mapping[int, int]
) -> dict[tuple[int, int], _Apart]:
    """Returns, for each pair of sources, what the collectives say of the difference of their
    clocks."""
    work = activity.work
    span_ns = max(
        int(gpu_work["end_ns"].max() - gpu_work["start_ns"].min())
        for gpu_work in (work[np.isin(work["gpu"], [gpu])] for gpu in sources)
        if len(gpu_work)
    )
    result: dict[tuple[int, int], _Apart] = {}
    gpus, starts, ends = (
        work[name][collectives.row].tolist() for name in ("gpu", "start_ns", "end_ns")
    )
    edges = collectives.edges.tolist()
    for index, kind in enumerate(collectives.kinds):
        if kind.op not in SYNCHRONIZING and kind.op != EXCHANGE:
            continue
        for one, other in _pairs(edges[index], edges[index + 1]):
            a, b = sources[gpus[one]], sources[gpus[other]]
            if a == b:
                continue
            if a > b:
                (a, one), (b, other) = (b, other), (a, one)
            pair_apart = result.setdefault((a, b), _Apart([], [], [], span_ns))
            is_first_sender = _sends(kind, gpus[one], activity.ranks)
            if is_first_sender is not True:  # the first one needs what the other one started
                pair_apart.most.append(ends[one] - starts[other])
            if is_first_sender is not False:
                pair_apart.least.append(starts[one] - ends[other])
            if is_first_sender is None or _received_late(
                (starts[one], ends[one]), (starts[other], ends[other]), is_first_sender
            ):
                shorter = min(ends[one] - starts[one], ends[other] - starts[other])
                pair_apart.ends.append(_End(
                    ends[one] - ends[other], shorter, index, kind.op in _ENDING_TOGETHER
                ))  # fmt: skip
    return result | {(b, a): pair_apart.reversed() for (a, b), pair_apart in result.items()}


def _sends(kind: Kind, gpu: int, ranks: Mapping[int, int]) -> bool | None:
    """Returns whether a GPU sends, of a pair; None: all of them send and receive."""
    return None if kind.pair is None else ranks.get(gpu) == kind.pair[0]


def _received_late(one: tuple[int, int], other: tuple[int, int], first_sends: bool) -> bool:
    """Returns whether a receive took so much longer than its send that it waited for it."""
    sent, received = (one, other) if first_sends else (other, one)
    return received[1] - received[0] > _ALIKE * (sent[1] - sent[0])


def _pairs(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yields each pair of the numbers from ``first`` until before ``last`` once; of many only the
    pairs with ``first``."""
    if last - first <= _MAX_PAIRED:
        for index in range(first, last):
            yield from ((index, other) for other in range(index + 1, last))
    else:
        yield from ((first, other) for other in range(first + 1, last))
