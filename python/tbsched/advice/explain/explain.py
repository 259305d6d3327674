"""Why a program of a profile took so long, and what would shorten it."""

from __future__ import annotations

import os

from tbsched.advice.explain.changes.predicted import changes_of
from tbsched.advice.explain.explanation import Explanation
from tbsched.advice.explain.facts import Facts
from tbsched.advice.explain.gaps import gaps_of
from tbsched.advice.explain.suppositions import supposed
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.durations import fit_durations
from tbsched.prediction.program_device import device_of
from tbsched.program.checks import instance, seconds
from tbsched.program.program import Program

_SHARE = 0.01  # of the makespan, that a gap costs at least


def explain(
    program: Program,
    device: str | os.PathLike[str] | DeviceSpec,
    *,
    threshold: float | None = None,
) -> Explanation:
    """Explains why the kernels of a profile did not run sooner, and what would let them.

    It looks for the times in which the GPU could have done more: no kernel ran, or none of a
    stream, or one that left SMs idle held up the next one. For each it says what the launch at the
    end of that time waited for. Until the launch was issued that is the host. From then on it is
    what the launch waits for in the prediction. Where the model would have run it sooner, the rest
    is ``unexplained``.

    If the prediction is far from the profile, it looks for what the profile may not say: that all
    streams shared one hardware queue, or that kernels were loaded at their first use. What brings
    the prediction nearest is supposed, and ``program.assumed`` of the result says so.

    For the causes that cost most it then tries changes: other streams, events, orders, carveouts,
    block sizes, priorities, more hardware queues, no synchronisation, no pauses of the host. Each
    is predicted, and those that shorten the program are kept. A change may need something to hold,
    such as that a kernel does not need the result of another one. Nobody but you knows that.

    Args:
        program: as :func:`tbsched.load_program` reads it. If ``fitted`` is empty, durations are
            fitted first (:func:`tbsched.fit_durations`).
        device: what it ran on: a name, the path of a ``.toml`` file, or a spec.
        threshold: seconds that a gap costs at least; None: one per cent of the makespan.

    Raises:
        TypeError, ValueError: no program, one without launches, or one that cannot run on the
            device.

    Example:
        >>> print(tb.explain(tb.load_program("trace.json.gz"), "h200"))  # doctest: +SKIP
    """
    instance("explain", "program", program, Program)
    spec = device_of(program, device)
    if not program.sequence.launches:
        raise ValueError("explain.program: it has no launches; at least one is needed")
    fitted = program if program.fitted else fit_durations(program, spec)
    fitted, spec, prediction = supposed(fitted, spec)
    facts = Facts.of(fitted, spec, prediction)
    if threshold is None:
        threshold = _SHARE * float(facts.end_ns.max() - facts.start_ns.min()) / 1e9
    least = seconds("explain", "threshold", threshold)
    gaps = gaps_of(facts, least * 1e9)
    return Explanation(fitted, prediction, gaps, changes_of(facts, gaps), least)
