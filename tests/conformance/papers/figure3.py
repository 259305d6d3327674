"""Figure 3 of the RTAS 2020 paper: how often round robin is wrong about the blocks of streams.

"Dissecting the CUDA Scheduling Hierarchy: a Performance and Predictability Perspective" compares
round robin with a Xavier on 7,000 configurations of 2 to 8 streams, each with one kernel of 1 to 4
blocks of 1 to 1024 threads, and finds it wrong ever more often, in up to 96 % of configurations.
How the configurations were chosen is not said; here blocks and threads of each kernel are drawn
evenly, 1,000 configurations for each number of streams. Every kernel is held until all are placed.

Run as a script, this does the same on a GPU, and keeps what it saw::

    python tests/conformance/papers/figure3.py --oracle gpu --predictor h200 --out figure3.jsonl.xz
"""

from __future__ import annotations

import argparse
import functools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tbsched.comparison.compare import compare
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict_many
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.files import save_traces
from tbsched.traces.trace import Trace
from tbsched.views.tables import render, table_of

STREAMS = range(2, 9)
PER_NUMBER_OF_STREAMS = 1000
REGISTERS = 16  # per thread, so few that warps are always scarcer


@dataclass(frozen=True)
class Bar:
    """A bar of the figure.

    Attributes:
        streams: how many kernels came one after the other.
        configurations: how many were compared.
        round_robin: of these, how many had other numbers of blocks on some SM than round robin has.
        model: the same for the device's own policy.
        waited: of these, in how many not all blocks found room.
    """

    streams: int
    configurations: int
    round_robin: int
    model: int
    waited: int


@functools.cache
def configurations(
    streams: int, count: int = PER_NUMBER_OF_STREAMS, carveout: int | None = None
) -> tuple[Sequence, ...]:
    """The configurations of one bar, the same each time."""
    draw = random.Random(streams)
    return tuple(
        Sequence(
            Launch(draw.randint(1, 4), draw.randint(1, 1024), REGISTERS, carveout=carveout)
            for _ in range(streams)
        )
        for _ in range(count)
    )


def bar(streams: int, traces: list[Trace], spec: DeviceSpec) -> Bar:
    """How what was seen of configurations compares with round robin and with the model."""
    waited = sum(any((placement.smid < 0).any() for placement in trace) for trace in traces)
    wrongs = (wrong(traces, spec, policy) for policy in ("round_robin", None))
    return Bar(streams, len(traces), *wrongs, waited)


def wrong(traces: list[Trace], spec: DeviceSpec, policy: str | None) -> int:
    """In how many configurations a policy has other numbers of blocks on some SM."""
    predicted = predict_many([trace.sequence for trace in traces], spec, policy)
    return sum(not compare(a, b).occupancy for a, b in zip(predicted, traces, strict=True))


@functools.cache
def figure(name: str) -> tuple[Bar, ...]:
    """The figure with a device's own model in the place of the GPU."""
    spec = device(name)
    seen = observed(lambda sequences: predict_many(sequences, spec))
    return tuple(bar(streams, traces, spec) for streams, traces in seen.items())


def observed(
    observe: Callable[[tuple[Sequence, ...]], Iterable[Trace]],
    count: int = PER_NUMBER_OF_STREAMS,
    carveout: int | None = None,
) -> dict[int, list[Trace]]:
    """What a GPU, or a model in its place, does with all configurations, by number of streams."""
    return {
        streams: [
            replace(trace, id=f"{streams}_{number}")
            for number, trace in enumerate(observe(configurations(streams, count, carveout)))
        ]
        for streams in STREAMS
    }


def main() -> None:
    """Prints the figure as a table, and writes what was seen to a trace file."""
    parser = argparse.ArgumentParser(description="Figure 3 of the RTAS 2020 paper")
    parser.add_argument("--oracle", default="xavier", help="'gpu', or a device to play it")
    parser.add_argument("--predictor", default="xavier", help="the device that predicts")
    parser.add_argument("--count", type=int, default=PER_NUMBER_OF_STREAMS, help="per bar")
    parser.add_argument("--carveout", type=int, default=None, help="of every kernel")
    parser.add_argument("--out", type=Path, default=None, help="where to write the traces")
    arguments = parser.parse_args()
    if arguments.oracle == "gpu":
        from tbsched.launcher.observe import Gpu

        with Gpu() as gpu:
            seen = observed(
                lambda sequences: map(gpu.observe, sequences), arguments.count, arguments.carveout
            )
    else:
        oracle = device(arguments.oracle)
        seen = observed(
            lambda sequences: predict_many(sequences, oracle), arguments.count, arguments.carveout
        )
    if arguments.out is not None:
        save_traces(arguments.out, (trace for traces in seen.values() for trace in traces))

    spec = device(arguments.predictor)
    rows = []
    for streams, traces in seen.items():
        found = bar(streams, traces, spec)
        wrong = (f"{100 * count / len(traces):.1f}" for count in (found.round_robin, found.model))
        rows.append((str(streams), str(len(traces)), *wrong, str(found.waited)))
    headings = ("streams", "configurations", "round robin wrong %", "model wrong %", "waited")
    print(render(table_of(headings, rows)))


if __name__ == "__main__":
    main()
