"""What a profile does not say, supposed where nothing else explains how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.durations import fit_durations
from tbsched.prediction.fitting.host import fitted_host
from tbsched.prediction.predict import predict, predict_launches
from tbsched.program.program import Program
from tbsched.program.sequence import with_launches
from tbsched.traces.trace import Trace

_UNEXPLAINED = 0.05  # error, as a share of the makespan, from which suppositions are tried
_BETTER = 0.5  # largest share of that error that may remain with a supposition


def supposed(program: Program, spec: DeviceSpec) -> tuple[Program, DeviceSpec, Trace]:
    """Returns the program, the device and the prediction that is near the profile.

    As they are, if they are near. Else with the one supposition that brings them nearest, which
    ``assumed`` of the program then has, with what it changes.
    """
    rows = program.measured
    measured = float(rows["end_ns"].max() - rows["start_ns"].min()) / 1e9
    given = predict(program.sequence, spec, host=program.host)

    def error(trace: Trace) -> float:
        return trace.makespan / measured - 1 if measured else 0.0

    least, best = _BETTER * abs(error(given)), None
    if abs(error(given)) > _UNEXPLAINED:
        for what, other, changed in _suppositions(program, spec):
            host, _ = fitted_host(other, changed)
            found = abs(error(predict_launches(other.sequence, changed, host=host)))
            if found < least:
                least, best = found, (what, other, changed)
    if best is None:
        return program, spec, given
    what, other, changed = best
    fitted = fit_durations(other, changed)  # as the durations were for another device
    trace = predict(fitted.sequence, changed, host=fitted.host)
    told = (
        f"{what}: the program is then predicted to take {_than(error(trace))} than measured, else "
        f"{_than(error(given))}."
    )
    return replace(fitted, assumed=(*program.assumed, told)), changed, trace


def _than(error: float) -> str:
    return f"{100 * abs(error):.1f} % {'longer' if error > 0 else 'less long'}"


def _suppositions(program: Program, spec: DeviceSpec) -> Iterator[tuple[str, Program, DeviceSpec]]:
    """Yields each supposition: words, and the program and device that it gives."""
    if program.connections is None and spec.hardware_queues > 1:
        one = replace(spec, hardware_queues=1)
        yield "Supposed that CUDA_DEVICE_MAX_CONNECTIONS was 1", program, one
    launches = program.sequence.launches
    if not any(launch.first_use for launch in launches):
        loading = [
            launch if launch.name is None else replace(launch, first_use=True)
            for launch in launches
        ]
        # Only the first launch of a name loads its kernel. Nodes of graphs were loaded before.
        if all(launch.stream is not None for launch in launches):
            sequence = with_launches(program.sequence, loading)
            what = "Supposed that each kernel was loaded at its first use"
            yield what, replace(program, sequence=sequence), spec
