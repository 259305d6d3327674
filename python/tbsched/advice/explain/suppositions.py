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

_MIN_ERROR = 0.05  # error, as a share of the makespan, from which suppositions are tried
_MAX_ERROR_LEFT = 0.5  # largest share of that error that may remain with a supposition


def choose_supposition(program: Program, spec: DeviceSpec) -> tuple[Program, DeviceSpec, Trace]:
    """Returns program, device and prediction, with the best supposition if one is needed.

    As they are, if they are near. Else with the one supposition that brings them nearest, which
    ``assumed`` of the program then has, with what it changes.
    """
    rows = program.measured
    measured = float(rows["end_ns"].max() - rows["start_ns"].min()) / 1e9
    prediction = predict(program.sequence, spec, host=program.host)

    def error(trace: Trace) -> float:
        """Returns the deviation from the measured makespan: 0.1 is 10 % longer."""
        return trace.makespan / measured - 1 if measured else 0.0

    least_error, best = _MAX_ERROR_LEFT * abs(error(prediction)), None
    if abs(error(prediction)) > _MIN_ERROR:
        for what, other, changed in _suppositions(program, spec):
            host, _ = fitted_host(other, changed)
            error_ = abs(error(predict_launches(other.sequence, changed, host=host)))
            if error_ < least_error:
                least_error, best = error_, (what, other, changed)
    if best is None:
        return program, spec, prediction
    what, other, changed = best
    fitted = fit_durations(other, changed)  # as the durations were for another device
    trace = predict(fitted.sequence, changed, host=fitted.host)
    sentence = (
        f"{what}: the program is then predicted to take {_deviation(error(trace))} than measured, "
        f"else {_deviation(error(prediction))}."
    )
    return replace(fitted, assumed=(*program.assumed, sentence)), changed, trace


def _deviation(error: float) -> str:
    """Returns a deviation in words, such as ``3.0 % longer``."""
    return f"{100 * abs(error):.1f} % {'longer' if error > 0 else 'less long'}"


def _suppositions(program: Program, spec: DeviceSpec) -> Iterator[tuple[str, Program, DeviceSpec]]:
    """Yields each supposition: words, and the program and device that follow from it."""
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
