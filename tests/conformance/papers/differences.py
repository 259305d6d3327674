"""Summary tables of start and end differences over all SMs (the thesis, section 7.6.1).

The *start difference* of a launch is the time between its first and its last start, the *end
difference* likewise. The thesis times warps; here they are blocks, of recordings and predictions
alike. Counted are launches as the thesis has them: a whole number of blocks for each SM, which all
do the same, run at the same time, and have the GPU for themselves. There are three tables: of all
such launches, of those that spread evenly over the SMs, and of the others.

python tests/conformance/papers/differences.py tests/traces/h200-timed/latencies.jsonl.xz
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tbsched as tb
from tbsched.traces.files import load_traces

TRACES = Path(__file__).parents[2] / "traces"
# Recordings with launches of the same number of blocks for each SM.
RECORDED = {
    "H200": ("h200-timed/directed", "h200-timed/latencies", "h200-timed/programs",
             "hierarchy/timed-h200", "ways/copies-h200", "ways-holdout/transfers-h200"),
    "H100": ("h100-timed/directed", "h100-timed/latencies", "h100-timed/programs",
             "hierarchy/timed-h100", "ways/copies-h100", "ways-holdout/transfers-h100"),
}  # fmt: skip
GROUPS = ("all", "even", "uneven")


@dataclass(frozen=True)
class Difference:
    """The differences of one launch, in nanoseconds.

    Attributes:
        name: of the trace, and the number of the launch.
        even: whether each SM got as many blocks.
        start: from the first start of a block to the last one.
        end: from the first end to the last one.
    """

    name: str
    even: bool
    start: int
    end: int

    @property
    def both(self) -> int:
        """How far the two differ."""
        return abs(self.end - self.start)


@dataclass(frozen=True)
class Extreme:
    """A row of a summary table: a quantity, its launch, and nanoseconds."""

    quantity: str
    name: str
    ns: int


def differences(trace: tb.Trace) -> Iterator[Difference]:
    """Yields those of the launches of a trace that are as the thesis's."""
    times = [
        (int(p.start_ns.min()), int(p.end_ns.max()))
        for p in trace
        if p.start_ns is not None and p.end_ns is not None and len(p.start_ns)
    ]
    if len(times) < len(trace):
        return
    for number, (launch, placement) in enumerate(
        zip(trace.sequence.launches, trace.placements, strict=True)
    ):
        start_ns, end_ns = placement.start_ns, placement.end_ns
        assert start_ns is not None
        assert end_ns is not None
        first, last = times[number]
        alone = sum(begin < last and first < end for begin, end in times) == 1
        alike = isinstance(launch.duration, float) and launch.partition is None
        at_once = start_ns.max() < end_ns.min()
        if alone and alike and at_once and launch.blocks % trace.device.sms == 0:
            occupancy = placement.occupancy(trace.device.sms)
            yield Difference(
                f"{trace.id} {number}", int(np.ptp(occupancy)) == 0,
                int(np.ptp(start_ns)), int(np.ptp(end_ns)),
            )  # fmt: skip


def group(found: Iterable[Difference], name: str) -> list[Difference]:
    """Returns the launches of a table, which is one of GROUPS."""
    return [one for one in found if name == "all" or one.even == (name == "even")]


def summary(found: Iterable[Difference]) -> list[Extreme]:
    """Returns the six rows of a table; none if there are no launches."""
    rows = []
    launches = list(found)
    for most, words in ((max, "greatest"), (min, "least")):
        for quantity, of in (("end less start", "both"), ("end", "end"), ("start", "start")):
            if launches:
                one = most(launches, key=lambda each: getattr(each, of))
                rows.append(Extreme(f"{words} {quantity}", one.name, getattr(one, of)))
    return rows


@functools.cache
def recorded(gpu: str) -> tuple[tuple[Difference, Difference], ...]:
    """Returns each launch of a GPU's recordings, and the same launch as predicted."""
    found: list[tuple[Difference, Difference]] = []
    for name in RECORDED[gpu]:
        for trace in load_traces(TRACES / f"{name}.jsonl.xz"):
            seen = list(differences(trace))
            if not seen:
                continue
            predicted = tb.predict(trace.sequence, gpu.lower(), issue_times=trace.issue_times)
            model = {
                f"{trace.id} {k}": (int(np.ptp(p.start_ns)), int(np.ptp(p.end_ns)))  # type: ignore[arg-type]
                for k, p in enumerate(predicted)
            }
            found += ((one, Difference(one.name, one.even, *model[one.name])) for one in seen)
    return tuple(found)


def rows() -> Iterator[tuple[str, ...]]:
    """Yields the rows of the page's table: nanoseconds of each GPU's launches, and predicted."""
    for name in GROUPS:
        columns = []
        for gpu in ("H100", "H200"):
            for which in (0, 1):
                launches = group((pair[which] for pair in recorded(gpu)), name)
                columns.append((len(launches), [row.ns for row in summary(launches)]))
        counts = [f"{count} launches" for count, _ in columns[::2]]
        if not any(values for _, values in columns):
            yield name, "none", *(cell for count in counts for cell in (count, ""))
            continue
        words = [row.quantity for row in summary(one for one, _ in recorded("H100"))]
        for number, quantity in enumerate(words):
            yield name, quantity, *(str(values[number]) for _, values in columns)


def main() -> int:
    """Prints the three tables of files of traces."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    found = [
        one
        for path in parser.parse_args().files
        for trace in load_traces(path)
        for one in differences(trace)
    ]
    for name in GROUPS:
        launches = group(found, name)
        print(f"{name}: {len(launches)} launches")
        for row in summary(launches):
            print(f"  {row.quantity:24} {row.ns:10} ns  {row.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
