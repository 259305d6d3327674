"""Local memory: how much the GPU is set up for, and in which steps it grows."""

from __future__ import annotations

from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.program.sequence import Launch, Release, Sequence

_WAITS = "mechanisms.local_memory_configuration"
_INITIAL, _UNIT = "allocation.local_memory_initial", "allocation.local_memory_unit"
_MAX_BYTES = 8 * 1024  # with more, all threads together might need more memory than there is


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures with how many bytes of local memory per thread a launch need not wait while a block
    is on the GPU, and returns findings on the initial size and its unit.

    Each is found by bisection: at first, after the GPU's local memory has grown once, and after it
    has grown twice.
    """

    def enters(first: int, second: int) -> bool:
        """Returns whether ``second`` bytes do not wait, after an earlier launch had ``first``."""
        events: list[Launch | Release] = [small(local_memory=first), Release(0)] if first else []
        (trace,) = lab.run([Sequence([*events, small(), small(local_memory=second)])])
        return trace[-1].placed == 1

    if enters(0, _MAX_BYTES):
        return read(None, 0, 0)
    initial = lab.largest(lambda size: enters(0, size), 0, _MAX_BYTES)
    grown = lab.largest(lambda size: enters(initial + 1, size), initial + 1, _MAX_BYTES)
    regrown = lab.largest(lambda size: enters(grown + 1, size), grown + 1, _MAX_BYTES)
    return read(initial, grown, regrown)


def read(initial: int | None, grown: int, regrown: int) -> list[Finding]:
    """Returns findings from the most bytes that entered at first and after each of two growths."""
    if initial is None:
        because = f"{_MAX_BYTES} bytes per thread did not wait for an idle GPU"
        unknown = "local memory makes nothing wait"
        return [
            determined(_WAITS, False, because),
            assumed(_INITIAL, 1024, unknown),
            assumed(_UNIT, 16, unknown),
        ]
    unit = regrown - grown
    because = f"{initial} bytes per thread entered beside a block, {initial + 1} waited"
    steps = f"one byte more than {initial} and than {grown} made room for {grown} and {regrown}"
    plain = unit > 0 and grown % unit == 0 and -(-(initial + 1) // unit) * unit == grown
    return [
        determined(_WAITS, True, because),
        determined(_INITIAL, initial, because),
        determined(_UNIT, unit, steps) if plain else assumed(_UNIT, max(unit, 1), steps),
    ]
