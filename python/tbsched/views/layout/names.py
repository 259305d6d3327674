"""What launches are called where there is little room."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

import numpy as np

from tbsched.program.arrays import Int64Array
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import (
    Copy,
    GraphLaunch,
    HostCall,
    HostFunction,
    Memset,
    RecordEvent,
    Release,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)
from tbsched.program.sequence import Sequence as Program
from tbsched.views.terminal import visible
from tbsched.views.words import launch_words, transfer_name, transfer_words

LONGEST = 48
_GAP = "…"
_BESIDE_NUMBER = 40  # characters of a name


def label(launch: Launch, longest: int = LONGEST) -> str:
    """Returns the launch's name, cut in the middle, or what it asks for if it has none.

    Args:
        launch: of a sequence.
        longest: characters, at least 3.
    """
    if launch.name:
        return cut(launch.name, longest)
    words = launch_words(launch)
    if len(words) <= longest:
        return words
    # What comes first says most, so the rest is left out.
    first = words[: longest - 2].rpartition(", ")[0]
    return f"{first}, {_GAP}" if first else cut(words, longest)


def numbered(sequence: Program, launch: int) -> str:
    """Returns a launch in words, such as ``launch 3 (gemm)``."""
    if not sequence.launches[launch].name:
        return f"launch {launch}"
    return f"launch {launch} ({_names_beside_numbers(sequence)(launch)})"


@functools.lru_cache(maxsize=4)
def _names_beside_numbers(sequence: Program) -> Callable[[int], str]:
    return labels_of(sequence.launches, _BESIDE_NUMBER)


def behind_words(sequence: Program, behind: int) -> str:
    """Returns what a launch waited behind, by its number in ``trace.waits``."""
    if behind >= 0:
        return numbered(sequence, behind)
    if behind == -1:
        return "other work"
    transfer = sequence.transfers[-2 - behind]
    return f"{transfer_name(-2 - behind, transfer)} ({transfer_words(transfer)})"


def call_names(sequence: Program) -> list[str]:
    """Returns each event's call, such as ``launch gemm`` or ``synchronize stream 2``.

    The first use of a kernel, which loads it, is marked: it takes far longer than other calls.
    """
    transfers = 0
    names = []
    for event in sequence:
        match event:
            case Launch():
                names.append(f"launch {label(event)}{', first use' if event.first_use else ''}")
            case GraphLaunch():
                names.append("launch graph")
                transfers += len(event.graph.transfers)
            case Copy() | Memset() | HostFunction():
                names.append(transfer_name(transfers, event))
                transfers += 1
            case RecordEvent():
                timing = " with timing" if event.timing else ""
                names.append(f"record event {event.event}{timing}")
            case WaitEvent():
                names.append(f"make stream {event.stream} wait for event {event.event}")
            case Synchronize(stream=None, event=None):
                names.append("synchronize")
            case Synchronize():
                awaited = (
                    f"stream {event.stream}" if event.event is None else f"event {event.event}"
                )
                names.append(f"synchronize {awaited}")
            case HostCall():
                names.append(cut(event.name))
            case WriteValue() | WaitValue():
                verb = "write" if isinstance(event, WriteValue) else "wait for"
                names.append(f"{verb} value {cut(event.name)}")
            case Release():
                names.append("release")
            case _:
                assert_never(event)
    return names


def labels_of(launches: Sequence[Launch], longest: int = LONGEST) -> Callable[[int], str]:
    """Returns a function from a launch's number to its label; names have different labels."""
    names = list(dict.fromkeys([launch.name for launch in launches if launch.name]))
    short = dict(zip(names, cut_apart(names, longest), strict=True))

    def labelled(launch: int) -> str:
        name = launches[launch].name
        return short[name] if name else label(launches[launch], longest)

    return labelled


def span_names(sequence: Program, longest: int = LONGEST) -> Callable[[int], str]:
    """Returns what names a launch by its number; numbers behind them are transfers."""
    launches, labelled = sequence.launches, labels_of(sequence.launches, longest)

    @functools.cache
    def named(index: int) -> str:
        if index < len(launches):
            return labelled(index)
        transfer = index - len(launches)
        return transfer_name(transfer, sequence.transfers[transfer])

    return named


def kernels_of(launches: Sequence[Launch]) -> Int64Array:
    """Returns the first launch of each one's name, int64 (launches,); itself if it has no name."""
    first: dict[str, int] = {}
    return np.array(
        [
            first.setdefault(launch.name, index) if launch.name else index
            for index, launch in enumerate(launches)
        ],
        np.int64,
    )


def cut(text: str, longest: int = LONGEST) -> str:
    """Returns the text on one line and without characters that cannot be shown, cut in the middle.

    Names of C++ templates begin alike and end alike, but most often in between. So the end is
    shown, too.
    """
    # Only the ends of a name are examined, as it may have megabytes.
    ends = text if len(text) <= 4 * longest else f"{text[: 2 * longest]}{text[-2 * longest :]}"
    shown = visible(ends)
    if len(shown) <= longest and ends is text:
        return shown
    begin = -(-(longest - 1) * 2 // 3)
    return f"{shown[:begin]}{_GAP}{shown[len(shown) - (longest - 1 - begin) :]}"


def cut_apart(texts: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Returns texts, cut so that different ones stay different.

    Where two are cut alike, each shows its begin, and what stands from the first difference on.
    Where even that is alike, a number follows.
    """
    cut_texts = {text: cut(text, longest) for text in texts}
    begin = longest // 2
    for same_texts in _cut_alike(cut_texts):
        # What has most in common with a text stands beside it.
        near = [_common(earlier, later) for earlier, later in itertools.pairwise(same_texts)]
        for text, *differs in zip(same_texts, [0, *near], [*near, 0], strict=True):
            since = max(begin, max(differs) - longest // 8)
            end = visible(text[since : since + begin])
            cut_texts[text] = f"{visible(text[:begin])}{_GAP}{end}"
    for same_texts in _cut_alike(cut_texts):
        for index, text in enumerate(same_texts):
            mark = f"{_GAP}{index}"
            cut_texts[text] = f"{cut_texts[text][: longest - len(mark)]}{mark}"
    return [cut_texts[text] for text in texts]


def _cut_alike(cut_of: Mapping[str, str]) -> list[list[str]]:
    """Returns groups of texts, each in alphabetical order, that are equal once they are cut.
    ``cut_of``: each text, cut."""
    groups: dict[str, list[str]] = {}
    for text in sorted(cut_of):
        groups.setdefault(cut_of[text], []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def _common(a: str, b: str) -> int:
    """Returns how many characters two texts have in common at their begins."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return low
