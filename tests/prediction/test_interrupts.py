"""Ctrl-C ends long work of the core, also that of its threads."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each takes more than a minute. The signal comes while it is under way.
WORK = {
    "one thread": "tb.predict_many([blocks] * 500, 'h200', threads=1)",
    "several threads": "tb.predict_many([blocks] * 500, 'h200', threads=3)",
    "outcomes": "tb.outcomes(packed, 'h200', races=1_000_000)",
    "processes": "tb.predict_processes([long] * 1000, 'h200', time_slice=3e-4)",
}
CHILD = """
import os, signal, threading
import tbsched as tb

signal.signal(signal.SIGINT, signal.default_int_handler)
blocks = tb.Sequence([tb.Launch(1_000_000, 32, 32, duration=1e-6)])
full = tb.Launch(264, 1024, 32)
packed = tb.Sequence([full, tb.Launch(132, 256, 32), tb.Release(0), tb.Launch(200, 512, 32)])
long = tb.Sequence([tb.Launch(1, 32, 32, duration=1.0)])
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {work}
    print("ended by itself")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_ctrl_c_ends_long_predictions(work: str) -> None:
    child = [sys.executable, "-c", CHILD.format(work=work)]
    found = subprocess.run(child, capture_output=True, text=True, timeout=60, check=False)
    assert (found.stdout, found.stderr, found.returncode) == ("interrupted\n", "", 0)
