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

_RANK_IN_NAME = re.compile(
    r"rank[^0-9a-zA-Z]?(\d{1,9})|(?:^|[^0-9a-zA-Z])r(\d{1,9})(?=[^0-9a-zA-Z])"
)
_MAX_NAMED = 3  # files that a sentence names
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
        """The activity of the profile, which :func:`joined` has checked to be there."""
        assert self.recording.activity is not None
        return self.recording.activity


def profiles_in(folder: Path, takes: Callable[[Path], bool]) -> tuple[list[Path], list[Path]]:
    """Returns the files of a folder that are profiles, and the others, by name.

    Args:
        folder: which is there.
        takes: whether a file is a profile.
    """
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name[0] != ".")
    profiles = [file for file in files if takes(file)]
    return profiles, [file for file in files if file not in profiles]


def left_out(other_files: Sequence[Path]) -> list[str]:
    """Returns a sentence that names files of a folder that are no profiles; [] without any."""
    if not other_files:
        return []
    names = ", ".join(file.name for file in other_files[:_MAX_NAMED])
    more = f" and {len(other_files) - _MAX_NAMED} more" if len(other_files) > _MAX_NAMED else ""
    return [f"Files of the folder that are no profiles are left out: {names}{more}."]


def joined(sources: Sequence[Source], sentences: Iterable[str] = ()) -> Program:
    """Returns the program of several ranks.

    Args:
        sources: a profile each, at least two.
        sentences: about the files, what was assumed.

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
    unsorted_ranks, assumed = _ranks_of(sources)
    world = _world(sources, unsorted_ranks)
    order = sorted(range(len(sources)), key=unsorted_ranks.__getitem__)
    sources = [sources[index] for index in order]
    ranks = [unsorted_ranks[index] for index in order]
    merged, source_by_gpu, gpus = _merged([source.activity for source in sources], ranks)
    merged = replace(merged, world=world or 0)
    matches = matched(merged)
    if matches.wrong:
        raise ValueError(f"{_files(sources)}: {matches.wrong[0]}")
    if not len(matches.row):
        lacking = next(
            (
                rank
                for rank, rank_gpus in zip(ranks, gpus, strict=True)
                if not _collectives(merged, rank_gpus)
            ),
            None,
        )
        why = (
            f"rank {lacking} has no collective" if lacking is not None
            else "; ".join(matches.notes) or "none of their collectives is of all of them"
        )  # fmt: skip
        raise ValueError(
            f"{_files(sources)}: the ranks share no collective ({why}), so nothing joins them; "
            "explain each file alone"
        )
    clocks, wrong = clocks_of(merged, matches, source_by_gpu)
    if wrong is not None:
        pair = f"rank {ranks[wrong.one]} and rank {ranks[wrong.other]}"
        if wrong.collective is None:
            problem = f"the collectives of {pair} contradict each other by {_words(wrong.ns)}"
        else:
            words = matches.kinds[wrong.collective].words
            problem = (
                f"most collectives of {pair} end far apart, number {wrong.collective} ({words}) "
                f"by {_words(wrong.ns)}"
            )
        raise ValueError(
            f"{_files(sources)}: {problem}, whatever their clocks are: are the profiles of one run?"
        )
    moved, _, _ = _merged(
        [
            source.activity.later(clock.added_ns)
            for source, clock in zip(sources, clocks, strict=True)
        ],
        ranks,
    )
    uncertain = {
        gpu: max(0, clock.uncertain_ns)
        for rank_gpus, clock in zip(gpus, clocks, strict=True)
        for gpu in rank_gpus
    }
    moved = replace(moved.later(-moved.first_ns), world=world or 0, uncertain_ns=uncertain)
    assumed = [
        *assumed, *sentences, *_about_clocks(ranks, clocks), *_about_missing(ranks, world),
        *_about_lacks(ranks, sources),
    ]  # fmt: skip
    first = sources[0].recording
    devices = {source.recording.device for source in sources}
    return Program(
        Events(()), (), np.zeros(0, MEASURED), np.zeros(0, TRANSFERS),
        device=first.device if len(devices) == 1 else None,
        sms=first.sms if len(devices) == 1 else None,
        format=f"{first.format}, {len(sources)} ranks", assumed=(_NOT_PREDICTED, *assumed),
        gpu=first.gpu if len(devices) == 1 else None, activity=moved, calls=np.zeros(0, np.int64),
        ranks=tuple(
            Rank(rank, source.file, rank_gpus, clock.added_ns / 1e9,
                 None if clock.uncertain_ns == UNKNOWN else clock.uncertain_ns / 1e9)
            for rank, source, rank_gpus, clock in zip(ranks, sources, gpus, clocks, strict=True)
        ),
    )  # fmt: skip


def _files(sources: Sequence[Source]) -> str:
    """Returns the names of the sources' files, in words."""
    names = [storage.shown(source.file) for source in sources]
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def _ranks_of(sources: Sequence[Source]) -> tuple[list[int], list[str]]:
    """Returns the rank of each profile, and what was assumed. Raises ValueError: two have the
    same."""
    ranks = [source.recording.rank for source in sources]
    assumed: list[str] = []
    if None in ranks:
        named_ranks = [_rank_in_name(source.file) for source in sources]
        if None not in named_ranks and len(set(named_ranks)) == len(named_ranks):
            ranks = [
                named_rank if rank is None else rank
                for rank, named_rank in zip(ranks, named_ranks, strict=True)
            ]
            assumed.append(
                "Ranks: not all profiles say theirs; assumed as their names number them."
            )
        elif all(rank is None for rank in ranks):
            ranks = list(range(len(sources)))
            assumed.append(
                "Ranks: the profiles do not say theirs; assumed in the order of the files."
            )
        else:
            index = ranks.index(None)
            raise ValueError(
                f"{storage.shown(sources[index].file)}: does not say its rank, and neither does "
                "its name; other profiles do. Name it like rank1.json.gz"
            )
    known_ranks = [rank for rank in ranks if rank is not None]
    for index, rank in enumerate(known_ranks):
        if rank in known_ranks[:index]:
            named_rank = sources[known_ranks.index(rank)].file
            raise ValueError(
                f"{storage.shown(sources[index].file)}: of rank {rank}, and so is "
                f"{storage.shown(named_rank)}; name one profile per rank"
            )
    return known_ranks, assumed


def _rank_in_name(file: str) -> int | None:
    """Returns the rank that a file's name contains; None: none."""
    match = _RANK_IN_NAME.search(Path(file).name)
    return None if match is None else int(match.group(1) or match.group(2))


def _world(sources: Sequence[Source], ranks: Sequence[int]) -> int | None:
    """Returns the number of ranks of the run; None if no profile has it. Raises ValueError:
    profiles contradict each other, or a rank is not one of them."""
    world: int | None = None
    for source in sources:
        size = source.recording.world
        if size is not None and world is not None and size != world:
            raise ValueError(
                f"{_files(sources)}: of a run of {world} ranks and of one of {size}; name profiles "
                "of one run"
            )
        world = size if world is None else world
    if world is not None:
        for source, rank in zip(sources, ranks, strict=True):
            if rank >= world:
                raise ValueError(
                    f"{storage.shown(source.file)}: rank {rank} of a run of {world} ranks; they "
                    f"are 0 to {world - 1}"
                )
    return world


def _merged(
    activities: Sequence[Activity], ranks: Sequence[int]
) -> tuple[Activity, dict[int, int], list[tuple[int, ...]]]:
    """Returns all activities in one, the source of each GPU, and the GPUs of each source. A GPU has
    the number of its rank, if each rank has one GPU; else they are counted."""
    gpus_by_source = [np.unique(activity.work["gpu"]).tolist() for activity in activities]
    single = all(len(work_rows) == 1 for work_rows in gpus_by_source)
    names: dict[str, int] = {}
    work: list[StructuredArray] = []
    host: list[StructuredArray] = []
    messages: list[StructuredArray] = []
    functions: list[StructuredArray] = []
    processes: list[int] = []
    source_by_gpu: dict[int, int] = {}
    gpus: list[tuple[int, ...]] = []
    counted = rows = host_rows = duplicates = 0
    for source, activity in enumerate(activities):
        gpu_numbers = [ranks[source]] if single else list(
            range(counted, counted + len(gpus_by_source[source]))
        )  # fmt: skip
        counted += len(gpu_numbers)
        gpus.append(tuple(gpu_numbers))
        source_by_gpu |= dict.fromkeys(gpu_numbers, source)
        name_index = np.array(
            [names.setdefault(name, len(names)) for name in activity.names] or [0], np.int32
        )
        work_rows = activity.work.copy()
        # Functions of a GPU that has no work are not in the account.
        ran = activity.host_functions[
            np.isin(activity.host_functions["gpu"], gpus_by_source[source])
        ]
        for added_rows in (work_rows, ran):
            added_rows["gpu"] = np.array(gpu_numbers)[
                np.searchsorted(gpus_by_source[source], added_rows["gpu"])
            ]
            added_rows["name"] = name_index[added_rows["name"]]
            known = added_rows["call"] != UNKNOWN
            added_rows["call"][known] += host_rows
        did = activity.host.copy()
        did["name"] = name_index[did["name"]]
        did["thread"] += len(processes)
        message_rows = activity.messages.copy()
        message_rows["work"] += rows
        for field in ("op", "group", "members", "type"):
            message_rows[field] = np.where(
                message_rows[field] == UNKNOWN, UNKNOWN, name_index[message_rows[field]]
            )
        first = max(processes, default=-1) + 1
        processes += [first + process for process in activity.processes]
        rows, host_rows = rows + len(work_rows), host_rows + len(did)
        duplicates += activity.duplicates
        work.append(work_rows)
        host.append(did)
        messages.append(message_rows)
        functions.append(ran)
    merged = Activity(
        np.concatenate(work).astype(WORK), np.concatenate(host).astype(HOST), tuple(names),
        tuple(processes), duplicates, np.concatenate(functions).astype(HOST_FUNCTIONS),
        np.concatenate(messages).astype(MESSAGES),
        {gpu: ranks[source] for gpu, source in source_by_gpu.items()},
    )  # fmt: skip
    return merged, source_by_gpu, gpus


def _collectives(activity: Activity, gpus: Sequence[int]) -> int:
    """Returns how many collectives ran on some GPUs."""
    work = activity.work
    return int(((work["kind"] == COLLECTIVE) & np.isin(work["gpu"], gpus)).sum())


def _about_clocks(ranks: Sequence[int], clocks: Sequence[Clock]) -> list[str]:
    """Returns sentences: how far each rank's clock was moved, and how sure that is."""
    sentences = []
    for rank, clock in zip(ranks[1:], clocks[1:], strict=True):
        if clock.uncertain_ns == UNKNOWN:
            sentences.append(
                f"The clock of rank {rank}: what it has in common with other ranks does not tell "
                "how far it is ahead of theirs, so its times are taken as they are."
            )
        else:
            sentences.append(
                f"The clock of rank {rank}: its collectives end with those of rank {ranks[0]} if "
                f"{_words(clock.added_ns)} is added to its times; that may be off by "
                f"{_words(clock.uncertain_ns)}."
            )
    return sentences


def _about_missing(ranks: Sequence[int], world: int | None) -> list[str]:
    """Returns a sentence that names the ranks without a profile; [] if there are none."""
    if world is None:
        return []
    count = world - len(ranks)
    if not count:
        return []
    missing = (rank for rank in range(world) if rank not in ranks)
    names = ", ".join(map(str, itertools.islice(missing, _MAX_NAMED)))
    more = f" and {count - _MAX_NAMED} more" if count > _MAX_NAMED else ""
    return [
        f"{count} of {world} ranks have no profile here (rank {names}{more}): how long collectives "
        "waited for them is not known, so what is left of a collective is a wait or a transfer."
    ]


def _about_lacks(ranks: Sequence[int], sources: Sequence[Source]) -> list[str]:
    """Returns sentences about what profiles lack, with the ranks if only some lack it."""
    ranks_by_sentence: dict[str, list[int]] = {}
    for rank, source in zip(ranks, sources, strict=True):
        for sentence in source.recording.missing:
            ranks_by_sentence.setdefault(sentence, []).append(rank)
    return [
        sentence
        if len(ranks_lacking) == len(sources)
        else f"Rank {', '.join(map(str, ranks_lacking))}: {sentence}"
        for sentence, ranks_lacking in ranks_by_sentence.items()
    ]


def _words(ns: int) -> str:
    """Returns a duration in ns in words, such as ``1.2 ms``."""
    if abs(ns) >= 10**9:
        return f"{ns / 1e9:,.3f} s"
    return f"{ns / 1e6:,.3f} ms" if abs(ns) >= 10**6 else f"{ns / _US:,.1f} us"
