"""Sequences that each show one mechanism, as a GPU was recorded to run them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources

from tbsched.errors import did_you_mean
from tbsched.traces.annotations import Shows
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """One mechanism's sequence.

    Attributes:
        name: such as ``H2.2``; the number before the point is the mechanism's.
        mechanism: what it shows, in words.
        ablation: device and policy (None: its own) of a predictor without the mechanism; None
            where no shipped one lacks it.
        trace: how the GPU ran it.
    """

    name: str
    mechanism: str
    ablation: tuple[str, str | None] | None
    trace: Trace


def case_sets() -> tuple[str, ...]:
    """Returns the names of the sets of cases."""
    folder = resources.files("tbsched.traces") / "cases"
    names = (file.name for file in folder.iterdir())
    return tuple(sorted(name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl")))


@functools.cache
def cases(name: str = "hopper") -> tuple[Case, ...]:
    """Returns a set of cases, in order.

    Raises:
        ValueError: no such set.
    """
    if name not in case_sets():
        raise ValueError(
            f"cases: {name!r} is unknown; there are {', '.join(case_sets())}"
            f"{did_you_mean(name, case_sets())}"
        )
    with resources.as_file(resources.files("tbsched.traces") / "cases" / f"{name}.jsonl") as path:
        return tuple(_case(trace) for trace in load_traces(path))


def _case(trace: Trace) -> Case:
    shows = Shows.read(trace.extra)
    return Case(trace.id, shows.mechanism, shows.ablation, trace)
