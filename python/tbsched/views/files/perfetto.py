"""Results over time as files for Perfetto (https://ui.perfetto.dev)."""

from __future__ import annotations

import os
from typing import TypeAlias

from tbsched import storage
from tbsched.advice.explain.explanation import Explanation
from tbsched.comparison.compare import Diff
from tbsched.errors import missing
from tbsched.prediction.processes import Processes
from tbsched.program.checks import instance
from tbsched.program.program import Program
from tbsched.sm.results import Simulation
from tbsched.traces.trace import Trace
from tbsched.views.traces import trace_head

# Endings of other formats that tbsched writes or reads.
_OTHERS = frozenset((".json", ".jsonl", ".html", ".csv", ".parquet", ".png", ".svg", ".pdf"))
Shown: TypeAlias = Trace | Explanation | Program | Processes | Diff | Simulation


def to_perfetto(trace: Shown, path: str | os.PathLike[str]) -> None:
    """Writes what happened over time for Perfetto: drop the file on https://ui.perfetto.dev.

    The GPU is a process with these tracks:

    - ``host``: an instant for each launch. A flow leads from it to the launch's first block.
    - ``host threads``: the calls of each thread of a prediction with ``host=``, until they return.
    - ``streams``: each launch, from the start of its first block to the end of its last.
    - ``streams: waits``: what each launch of a prediction waited for. The time in which its stream
      was busy with earlier launches is left out. A row shows at most 64 waits at one time.
    - ``SMs``: the blocks of each SM. Blocks of one launch that come together and leave together
      are one slice, ``gemm x8``. Its arguments say which blocks.
    - ``resident blocks``: a counter for the GPU, and one for each SM.

    A held sequence has no times: event n is at second n. Blocks are left out where nobody knows
    after which event they came: those that an observation placed late, and in a prediction those
    that came after the first 200 releases.

    Of a profile (:class:`tbsched.Program`) the process has what was measured: launch calls in rows
    by host thread, kernels in rows by stream, and copies and memsets. For an explanation there are
    both, and the gaps with their causes. Of several ranks each is a process, with where its time
    went and what ran in its streams; flows lead from who waited longest to who came last.

    Several processes on one GPU (:class:`tbsched.Processes`) are as many processes, all on one
    clock, and one more with their turns. Of a comparison (:class:`tbsched.Diff`) both traces are
    there. Of a simulated kernel (:class:`tbsched.sm.Simulation`) there are blocks in rows by core;
    when each warp could issue, and the open rows of each DRAM bank, if ``simulate`` kept them.

    Args:
        trace: a prediction or an observation, a profile, what :func:`tbsched.explain` found,
            several processes, a comparison, or a simulated kernel.
        path: such as ``out.pftrace``. The file appears whole or not at all.

    Raises:
        FileNotFoundError: no such folder.
        ImportError: perfetto is missing (``pip install perfetto``).
        TypeError: none of these, or not a path.
        ValueError: a timed sequence of which nobody recorded when blocks ran; a path with the
            ending of another format, or something there that cannot be replaced.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(264, 256, 32, duration=1e-3, name="gemm")])
        >>> tb.show.to_perfetto(tb.predict(seq, "h200"), "/dev/null")
    """
    if not isinstance(trace, Shown):
        instance("to_perfetto", "trace", trace, Trace)
    try:
        from tbsched.views.files.tracks import (
            write_explanation,
            write_processes,
            write_program,
            write_simulation,
            write_traces,
        )
    except ImportError as error:
        raise missing("Perfetto traces", "perfetto", "perfetto") from error
    output_path = storage.as_path(path)
    if output_path.suffix.lower() in _OTHERS:
        raise ValueError(
            f"to_perfetto: path: {output_path}: a trace for Perfetto ends with .pftrace"
        )
    with storage.replacing(output_path) as file:
        match trace:
            case Explanation():
                write_explanation(trace, file)
            case Program():
                write_program(trace, file)
            case Processes():
                write_processes(trace, file)
            case Simulation():
                write_simulation(trace, file)
            case Diff():
                titled = {"a": trace.a, "b": trace.b}
                write_traces({f"{k}: {trace_head(x)}": x for k, x in titled.items()}, file)
            case Trace():
                write_traces({trace_head(trace): trace}, file)
