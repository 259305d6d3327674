"""Figure 3 of the RTAS 2020 paper: how often round robin says where the blocks of streams go.

"Dissecting the CUDA Scheduling Hierarchy: a Performance and Predictability Perspective" compares
round robin with a Xavier on 7,000 configurations of 2 to 8 streams, each with one kernel of 1 to 4
blocks of 1 to 1024 threads, and finds it wrong ever more often, in up to 96 % of configurations.
How the configurations were chosen is not said; here blocks and threads of each kernel are drawn
evenly, 1,000 configurations for each number of streams. Every kernel is held until all are placed.

Run as a script, this does the same on a GPU::

    python tests/conformance/figure3.py --oracle gpu --predictor h200 --out figure3.jsonl.xz
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tbsched.compare import compare
from tbsched.predict import predict
from tbsched.report import render, table_of
from tbsched.sequence import Launch, Sequence
from tbsched.spec import DeviceSpec, device
from tbsched.trace import Trace, save_traces

STREAMS = range(2, 9)
PER_NUMBER_OF_STREAMS = 1000
REGISTERS = 16  # per thread, so few that warps are always scarcer


@dataclass(frozen=True)
class Bar:
    """A bar of the figure.

    Attributes:
        streams: how many kernels came one after the other.
        configurations: how many were compared.
        round_robin: of these, how many had other numbers of blocks on the SMs than round robin has.
        model: the same for the model.
        waited: of these, in how many not all blocks found room.
    """

    streams: int
    configurations: int
    round_robin: int
    model: int
    waited: int

    @property
    def misprediction(self) -> float:
        """The share that round robin gets wrong."""
        return self.round_robin / self.configurations


def configurations(
    streams: int, count: int = PER_NUMBER_OF_STREAMS, carveout: int | None = None
) -> Iterator[Sequence]:
    """The configurations of one bar, the same each time."""
    draw = random.Random(streams)
    for _ in range(count):
        yield Sequence(
            Launch(draw.randint(1, 4), draw.randint(1, 1024), REGISTERS, carveout=carveout)
            for _ in range(streams)
        )


def bar(streams: int, traces: list[Trace], spec: DeviceSpec) -> Bar:
    """How the real mapping of configurations compares with round robin, and with the model."""

    def wrong(policy: str | None) -> int:
        return sum(
            not compare(predict(trace.sequence, spec, policy), trace).occupancy for trace in traces
        )

    waited = sum(any((placement.smid < 0).any() for placement in trace) for trace in traces)
    return Bar(streams, len(traces), wrong("round_robin"), wrong(None), waited)


def modelled(name: str) -> list[Bar]:
    """The figure with the model in place of the GPU."""
    spec = device(name)
    return [
        bar(streams, [predict(sequence, spec) for sequence in configurations(streams)], spec)
        for streams in STREAMS
    ]


def main() -> None:
    """Prints the figure as a table, and writes what a GPU did to a trace file."""
    parser = argparse.ArgumentParser(description="Figure 3 of the RTAS 2020 paper")
    parser.add_argument("--oracle", default="xavier", help="'gpu', or a device to play it")
    parser.add_argument("--predictor", default=None, help="the device that predicts")
    parser.add_argument("--count", type=int, default=PER_NUMBER_OF_STREAMS, help="per bar")
    parser.add_argument("--carveout", type=int, default=None, help="of every kernel")
    parser.add_argument("--out", type=Path, default=None, help="where to write the traces")
    arguments = parser.parse_args()
    on_gpu = arguments.oracle == "gpu"
    spec = device(arguments.predictor or ("h200" if on_gpu else arguments.oracle))

    def run_all(observe: Callable[[Sequence], Trace]) -> None:
        rows, recorded = [], []
        for streams in STREAMS:
            drawn = configurations(streams, arguments.count, arguments.carveout)
            traces = [
                replace(observe(sequence), id=f"streams{streams}_{number}")
                for number, sequence in enumerate(drawn)
            ]
            found = bar(streams, traces, spec)
            recorded += traces
            shares = (f"{100 * wrong / len(traces):.1f}" for wrong in (found.round_robin, found.model))
            rows.append((str(streams), str(len(traces)), *shares, str(found.waited)))
        headings = ("streams", "configurations", "round robin wrong %", "model wrong %", "waited")
        print(render(table_of(headings, rows)))
        if arguments.out is not None:
            save_traces(arguments.out, recorded)

    if on_gpu:
        from tbsched.observe import Gpu

        with Gpu() as gpu:
            run_all(gpu.observe)
    else:
        run_all(lambda sequence: predict(sequence, arguments.oracle))


if __name__ == "__main__":
    main()
