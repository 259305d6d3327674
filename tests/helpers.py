"""Short forms that the tests share."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tbsched.hardware.catalogue import device
from tbsched.hardware.device_fields import Mechanisms
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies, predict
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.files import load_traces
from tbsched.traces.placement import Placement
from tbsched.traces.trace import Trace

ROOT = Path(__file__).parents[1]
TRACES = ROOT / "tests" / "traces" / "h200"
KB = 1024
CONFIGURATIONS = (8, 16, 32, 64, 100, 132, 164, 196, 228)  # of an SM of the H200, in KB
# Those that put a block on an SM with as few as any; first fit fills SM after SM.
BALANCING = [row.name for row in policies() if row.name != "first_fit"]
THOROUGH = "TBSCHED_THOROUGH"  # an environment variable, which `make sanitize` sets
RANDOM = bool(os.environ.get("TBSCHED_RANDOM"))  # whether Hypothesis draws anew in every run
RESERVE = KB  # the runtime's own in every block
_SWITCHES = {field.name for field in dataclasses.fields(Mechanisms)}


def examples(thorough: int) -> int:
    """How many Hypothesis draws: so many in ``make sanitize``, a quarter of them elsewhere."""
    return thorough if os.environ.get(THOROUGH) else thorough // 4


@functools.cache
def recorded(name: str) -> tuple[Trace, ...]:
    """The traces of a recording in :data:`TRACES`, read once."""
    (path,) = TRACES.glob(f"{name}.jsonl*")
    return tuple(load_traces(path))


def gpu(sms: int = 1, base: str = "rtx3090", **changes: Any) -> DeviceSpec:
    """A device cut down to a few SMs, even ones preferred, with fields or mechanisms changed.

    Its GPCs, where it has any, are gone too.
    """
    spec = device(base)
    switches = {key: changes.pop(key) for key in _SWITCHES & set(changes)}
    few = {
        "sms": sms,
        "sm_preference": (*range(0, sms, 2), *range(1, sms, 2)),
        "gpcs": (),
        "mechanisms": dataclasses.replace(spec.mechanisms, **switches),
    }
    return dataclasses.replace(spec, **{**few, **changes})


def launch(blocks: int = 1, warps: int = 1, registers: int = 16, **rest: Any) -> Launch:
    """A kernel counted in whole warps."""
    return Launch(blocks, 32 * warps, registers, **rest)


def run(spec: DeviceSpec | str, *events: Event, policy: str | None = None) -> Trace:
    return predict(Sequence(events), spec, policy=policy)


def last(spec: DeviceSpec | str, *events: Event, policy: str | None = None) -> Placement:
    """What became of the last launch."""
    return run(spec, *events, policy=policy)[-1]


def fits(spec: DeviceSpec | str, *events: Event) -> bool:
    """Whether the last launch is placed whole before the next event."""
    return bool((last(spec, *events).smid >= 0).all())


def room(spec: DeviceSpec | str, *events: Event) -> int:
    """How many blocks of the last launch there was room for, over all SMs, when it came."""
    trace = run(spec, *events)
    assert trace.capacities is not None
    return int(trace.capacities()[-1].blocks.sum())


def asks_for(kilobytes: int) -> Launch:
    """A block that enters an SM of the H200 only if that is configured to this size.

    It needs more than the next smaller configuration, and by a carveout of 0 asks for no more.
    """
    smaller = [size for size in CONFIGURATIONS if size < kilobytes]
    needed = smaller[-1] * KB - RESERVE + 1 if smaller else 1
    return Launch(1, 32, 16, needed, carveout=0)


def admits(spec: DeviceSpec, first: Launch, second: Launch) -> bool:
    """Whether an SM with the first block is configured so that the second may enter.

    There need not be room for it.
    """
    return last(spec, first, second).limiter != "configuration"


def sets(spec: DeviceSpec, first: Launch) -> list[int]:
    """The configurations, in KB, that an idle SM may have with a block of this launch: one."""
    return [size for size in CONFIGURATIONS if admits(spec, first, asks_for(size))]


def enters(spec: DeviceSpec, second: Launch) -> list[int]:
    """The configurations, in KB, of busy SMs that take a block of this launch."""
    return [size for size in CONFIGURATIONS if admits(spec, asks_for(size), second)]


def smids(trace: Trace) -> list[list[int]]:
    return [placement.smid.tolist() for placement in trace]


def final(trace: Trace) -> list[list[int]]:
    rows = [placement.final_smid for placement in trace]
    return [[] if row is None else row.tolist() for row in rows]


def released(*launches: int) -> list[Event]:
    return [Release(number) for number in launches]


def run_python(code: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A program of its own that finds what this one finds; with what it says."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=check,
    )


FAKE_KINDS = (
    "contexts",
    "current contexts",
    "device memory",
    "events",
    "executable graphs",
    "graphs",
    "green contexts",
    "host memory",
    "links",
    "libraries",
    "streams",
)


class Fake:
    """The settings and counters of a running fake driver (``tests/launcher/fake_driver``)."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        for call in ("fake_get", "fake_live", "fake_calls"):
            self._library[call].restype = ctypes.c_int64
        self._library.fake_failed.restype = ctypes.c_char_p

    def __getitem__(self, key: str) -> int:
        return int(self._library.fake_get(key.encode()))

    def __setitem__(self, key: str, value: int) -> None:
        self._library.fake_set(key.encode(), ctypes.c_int64(value))

    def fail(self, call: str = "", at: int = 1, *, code: int = 1, for_good: bool = False) -> None:
        """Makes the driver's ``at``-th call from now on fail; 0: none any more.

        Args:
            call: counts the calls of this function only.
            code: of the error; 1 is CUDA_ERROR_INVALID_VALUE.
            for_good: the calls after it fail, too.
        """
        number = ctypes.c_int64
        self._library.fake_fail(call.encode(), number(at), number(code), number(for_good))

    def interrupt(self, call: str, at: int) -> None:
        """Sends SIGINT to this process in the ``at``-th call of this function; 0: in none."""
        self._library.fake_interrupt(call.encode(), ctypes.c_int64(at))

    def stand_still(self, launches: int) -> None:
        """No time passes on the GPU while the host issues a timed sequence of so many launches.

        The launch of its own that comes before every timed sequence is not one of them.
        """
        first = self["launches"] + 2
        self["still_from"], self["still_until"] = first, max(first, first + launches - 1)

    @property
    def failed(self) -> str:
        """The call that was made to fail last."""
        return str(self._library.fake_failed().decode())

    def calls(self, call: str = "") -> int:
        """How many there were since the last ``fail`` or ``interrupt``."""
        return int(self._library.fake_calls(call.encode()))

    def live(self) -> dict[str, int]:
        """What has been taken from the driver and not been given back, by kind."""
        return {kind: int(self._library.fake_live(kind.encode())) for kind in FAKE_KINDS}


def run_on_fake(code: str, fake: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """In another process: the driver is loaded once a process, with its environment."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "TBSCHED_LIBCUDA": str(fake),
            "TBSCHED_LIBNVML": str(fake),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
