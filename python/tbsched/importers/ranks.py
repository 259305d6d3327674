"""Profiles of ranks that become one program: joined by their collectives, on one clock."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tbsched import storage
from tbsched.importers.records import Recording
from tbsched.program.activity import (
    COLLECTIVE,
    HOST,
    HOST_FUNCTIONS,
    MESSAGES,
    UNKNOWN,
    WORK,
    Activity,
)
from tbsched.program.arrays import StructuredArray
from tbsched.program.collectives import Clock, clocks_of, matched
from tbsched.program.program import MEASURED, TRANSFERS, Program
from tbsched.program.ranks import Rank
from tbsched.program.sequence import Sequence as Events

_NUMBER = re.compile(r"rank[^0-9a-zA-Z]?(\d{1,9})|(?:^|[^0-9a-zA-Z])r(\d{1,9})(?=[^0-9a-zA-Z])")
_MOST_NAMED = 3  # files that a sentence names
_NOT_PREDICTED = (
    "Several ranks are not predicted: what one of them saves, it may wait for in its next "
    "collective. What all save without a cause is estimated by a replay of the profiles. Explain "
    "one rank by itself for its changes, which hold for it alone."
)
_US = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """The profile of one rank.

    Attributes:
        file: its name.
        recording: what it tells.
    """

    file: str
    recording: Recording

    @property
    def activity(self) -> Activity:
        """What ran, which ``joined`` has checked to be there."""
        assert self.recording.activity is not None
        return self.recording.activity


def profiles_in(folder: Path, takes: Callable[[Path], bool]) -> tuple[list[Path], list[Path]]:
    """Returns the files of a folder that are profiles, and the others, by name.

    Args:
        folder: which is there.
        takes: whether a file is a profile.
    """
    files = sorted(each for each in folder.iterdir() if each.is_file() and each.name[0] != ".")
    found = [each for each in files if takes(each)]
    return found, [each for each in files if each not in found]


def left_out(others: Sequence[Path]) -> list[str]:
    """Returns a sentence that names files of a folder that are no profiles; [] without any."""
    if not others:
        return []
    names = ", ".join(each.name for each in others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return [f"Files of the folder that are no profiles are left out: {names}{more}."]


def joined(sources: Sequence[Source], told: Iterable[str] = ()) -> Program:
    """Returns the program of several ranks.

    Args:
        sources: a profile each, at least two.
        told: sentences about the files.

    Raises:
        ValueError: a rank twice, numbers of ranks that contradict each other, or collectives that
            are not of one run; names the files.
    """
    for source in sources:
        if source.recording.activity is None:
            raise ValueError(
                f"{storage.shown(source.file)}: a {source.recording.format} does not say what the "
                "host did, so it is joined with no other rank; name it alone"
            )
    numbers, assumed = _numbers(sources)
    world = _world(sources, numbers)
    order = sorted(range(len(sources)), key=numbers.__getitem__)
    sources = [sources[place] for place in order]
    ranks = [numbers[place] for place in order]
    together, source_of, gpus = _together([source.activity for source in sources], ranks)
    together = replace(together, world=world or 0)
    found = matched(together)
    if found.wrong:
        raise ValueError(f"{_files(sources)}: {found.wrong[0]}")
    if not len(found.row):
        lacking = next(
            (
                rank
                for rank, own in zip(ranks, gpus, strict=True)
                if not _collectives(together, own)
            ),
            None,
        )
        why = (
            f"rank {lacking} has no collective" if lacking is not None
            else "; ".join(found.notes) or "none of their collectives is of all of them"
        )  # fmt: skip
        raise ValueError(
            f"{_files(sources)}: the ranks share no collective ({why}), so nothing joins them; "
            "explain each file alone"
        )
    clocks, wrong = clocks_of(together, found, source_of)
    if wrong is not None:
        one, other, ns = wrong
        raise ValueError(
            f"{_files(sources)}: the collectives of rank {ranks[one]} and rank {ranks[other]} "
            f"contradict each other by {_words(ns)}, whatever their clocks are: are the profiles "
            "of one run?"
        )
    moved, _, _ = _together(
        [
            source.activity.later(clock.added_ns)
            for source, clock in zip(sources, clocks, strict=True)
        ],
        ranks,
    )
    uncertain = {
        gpu: max(0, clock.uncertain_ns)
        for own, clock in zip(gpus, clocks, strict=True)
        for gpu in own
    }
    moved = replace(moved.later(-moved.first_ns), world=world or 0, uncertain_ns=uncertain)
    assumed = [
        *assumed, *told, *_about_clocks(ranks, clocks), *_about_missing(ranks, world),
        *_of_sources(ranks, sources),
    ]  # fmt: skip
    first = sources[0].recording
    same = {source.recording.device for source in sources}
    return Program(
        Events(()), (), np.zeros(0, MEASURED), np.zeros(0, TRANSFERS),
        device=first.device if len(same) == 1 else None,
        sms=first.sms if len(same) == 1 else None,
        format=f"{first.format}, {len(sources)} ranks", assumed=(_NOT_PREDICTED, *assumed),
        gpu=first.gpu if len(same) == 1 else None, activity=moved, calls=np.zeros(0, np.int64),
        ranks=tuple(
            Rank(rank, source.file, own, clock.added_ns / 1e9,
                 None if clock.uncertain_ns == UNKNOWN else clock.uncertain_ns / 1e9)
            for rank, source, own, clock in zip(ranks, sources, gpus, clocks, strict=True)
        ),
    )  # fmt: skip


def _files(sources: Sequence[Source]) -> str:
    names = [storage.shown(source.file) for source in sources]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _numbers(sources: Sequence[Source]) -> tuple[list[int], list[str]]:
    """Returns the rank of each profile, and what was assumed.

    Raises:
        ValueError: two have the same.
    """
    said = [source.recording.rank for source in sources]
    assumed: list[str] = []
    if None in said:
        named = [_named(source.file) for source in sources]
        if None not in named and len(set(named)) == len(named):
            said = [other if own is None else own for own, other in zip(said, named, strict=True)]
            assumed.append(
                "Ranks: not all profiles say theirs; assumed as their names number them."
            )
        elif all(own is None for own in said):
            said = list(range(len(sources)))
            assumed.append(
                "Ranks: the profiles do not say theirs; assumed in the order of the files."
            )
        else:
            place = said.index(None)
            raise ValueError(
                f"{storage.shown(sources[place].file)}: does not say its rank, and neither does "
                "its name; other profiles do. Name it like rank1.json.gz"
            )
    found = [number for number in said if number is not None]
    for place, number in enumerate(found):
        if number in found[:place]:
            other = sources[found.index(number)].file
            raise ValueError(
                f"{storage.shown(sources[place].file)}: of rank {number}, and so is "
                f"{storage.shown(other)}; name one profile per rank"
            )
    return found, assumed


def _named(file: str) -> int | None:
    """The rank that the name of a file tells; None: none."""
    match = _NUMBER.search(Path(file).name)
    return None if match is None else int(match.group(1) or match.group(2))


def _world(sources: Sequence[Source], numbers: Sequence[int]) -> int | None:
    """Returns the number of ranks of the run; None if no profile has it.

    Raises:
        ValueError: profiles contradict each other, or a rank is not one of them.
    """
    world: int | None = None
    for source in sources:
        own = source.recording.world
        if own is not None and world is not None and own != world:
            raise ValueError(
                f"{_files(sources)}: of a run of {world} ranks and of one of {own}; name profiles "
                "of one run"
            )
        world = own if world is None else world
    if world is not None:
        for source, number in zip(sources, numbers, strict=True):
            if number >= world:
                raise ValueError(
                    f"{storage.shown(source.file)}: rank {number} of a run of {world} ranks; they "
                    f"are 0 to {world - 1}"
                )
    return world


def _together(
    activities: Sequence[Activity], ranks: Sequence[int]
) -> tuple[Activity, dict[int, int], list[tuple[int, ...]]]:
    """Returns all activities in one, the source of each GPU, and the GPUs of each source.

    A GPU has the number of its rank, if each rank has one GPU; else they are counted.
    """
    own_gpus = [np.unique(activity.work["gpu"]).tolist() for activity in activities]
    single = all(len(own) == 1 for own in own_gpus)
    names: dict[str, int] = {}
    work: list[StructuredArray] = []
    host: list[StructuredArray] = []
    messages: list[StructuredArray] = []
    functions: list[StructuredArray] = []
    processes: list[int] = []
    source_of: dict[int, int] = {}
    gpus: list[tuple[int, ...]] = []
    counted = rows = host_rows = duplicates = 0
    for source, activity in enumerate(activities):
        numbers = [ranks[source]] if single else list(
            range(counted, counted + len(own_gpus[source]))
        )  # fmt: skip
        counted += len(numbers)
        gpus.append(tuple(numbers))
        source_of |= dict.fromkeys(numbers, source)
        place = np.array(
            [names.setdefault(name, len(names)) for name in activity.names] or [0], np.int32
        )
        own = activity.work.copy()
        # Functions of a GPU that has no work are not in the account.
        ran = activity.host_functions[np.isin(activity.host_functions["gpu"], own_gpus[source])]
        for rows_of in (own, ran):
            rows_of["gpu"] = np.array(numbers)[np.searchsorted(own_gpus[source], rows_of["gpu"])]
            rows_of["name"] = place[rows_of["name"]]
            known = rows_of["call"] != UNKNOWN
            rows_of["call"][known] += host_rows
        did = activity.host.copy()
        did["name"] = place[did["name"]]
        did["thread"] += len(processes)
        said = activity.messages.copy()
        said["work"] += rows
        for field in ("op", "group", "members", "type"):
            said[field] = np.where(said[field] == UNKNOWN, UNKNOWN, place[said[field]])
        first = max(processes, default=-1) + 1
        processes += [first + process for process in activity.processes]
        rows, host_rows = rows + len(own), host_rows + len(did)
        duplicates += activity.duplicates
        work.append(own)
        host.append(did)
        messages.append(said)
        functions.append(ran)
    found = Activity(
        np.concatenate(work).astype(WORK), np.concatenate(host).astype(HOST), tuple(names),
        tuple(processes), duplicates, np.concatenate(functions).astype(HOST_FUNCTIONS),
        np.concatenate(messages).astype(MESSAGES),
        {gpu: ranks[source] for gpu, source in source_of.items()},
    )  # fmt: skip
    return found, source_of, gpus


def _collectives(activity: Activity, gpus: Sequence[int]) -> int:
    """Returns how many collectives ran on some GPUs."""
    work = activity.work
    return int(((work["kind"] == COLLECTIVE) & np.isin(work["gpu"], gpus)).sum())


def _about_clocks(ranks: Sequence[int], clocks: Sequence[Clock]) -> list[str]:
    """Returns sentences: how far each rank's clock was moved, and how sure that is."""
    found = []
    for rank, clock in zip(ranks[1:], clocks[1:], strict=True):
        if clock.uncertain_ns == UNKNOWN:
            found.append(
                f"The clock of rank {rank}: what it has in common with other ranks does not tell "
                "how far it is ahead of theirs, so its times are taken as they are."
            )
        else:
            found.append(
                f"The clock of rank {rank}: its collectives end with those of rank {ranks[0]} if "
                f"{_words(clock.added_ns)} is added to its times; that may be off by "
                f"{_words(clock.uncertain_ns)}."
            )
    return found


def _about_missing(ranks: Sequence[int], world: int | None) -> list[str]:
    """Returns a sentence that names the ranks without a profile; [] if there are none."""
    if world is None:
        return []
    count = world - len(ranks)
    if not count:
        return []
    missing = (rank for rank in range(world) if rank not in ranks)
    names = ", ".join(map(str, itertools.islice(missing, _MOST_NAMED)))
    more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
    return [
        f"{count} of {world} ranks have no profile here (rank {names}{more}): how long collectives "
        "waited for them is not known, so what is left of a collective is a wait or a transfer."
    ]


def _of_sources(ranks: Sequence[int], sources: Sequence[Source]) -> list[str]:
    """Returns what the profiles lack, in sentences; one that only some ranks share names them."""
    seen: dict[str, list[int]] = {}
    for rank, source in zip(ranks, sources, strict=True):
        for sentence in source.recording.missing:
            seen.setdefault(sentence, []).append(rank)
    return [
        sentence if len(of) == len(sources) else f"Rank {', '.join(map(str, of))}: {sentence}"
        for sentence, of in seen.items()
    ]


def _words(ns: int) -> str:
    """A time in words."""
    if abs(ns) >= 10**9:
        return f"{ns / 1e9:,.3f} s"
    return f"{ns / 1e6:,.3f} ms" if abs(ns) >= 10**6 else f"{ns / _US:,.1f} us"
