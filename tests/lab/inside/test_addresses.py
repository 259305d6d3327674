"""The script that records kernels on a GPU, with programs that play the recorder and ncu."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers import ROOT
from lab.inside.addresses import GROUPS, METRICS, SMALL_BLOCKS
from sm.recordings.kernels import measured_of, recorded, recorded_of

# Plays kernels/recorded: every kernel is `transpose`; one cannot be run.
RECORDER = """\
import json, shutil, sys
verb, folder, *names = sys.argv[1:]
for name in names:
    if name == "kmeans":
        sys.exit("recorded: out of order")
    for kind in ("events", "ends", "sms"):
        shutil.copy(f"{sys.path[0]}/transpose.{kind}", f"{folder}/{name}.{kind}")
    print(json.dumps({"name": name, "threads": 256, "blocks_per_sm": 8, "same": True}))
"""
NCU = """\
import sys
names = sys.argv[sys.argv.index("plain") + 2:] if "plain" in sys.argv else []
metrics = %r
if not names:
    print("\\n".join(metric.split(".")[0] + "  Counter" for metric in metrics))
else:
    print("==PROF== profiling")
    print(",".join(f'"{name}"' for name in ("ID", "Kernel Name", *metrics)))
    print(",".join('""' if at < 2 else '"Kbyte"' for at in range(len(metrics) + 2)))
    for at in range(len(names)):
        print(",".join([f'"{at}"', '"traced"', *[f'"1,00{at}"'] * len(metrics)]))
"""


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}", "utf-8")
    path.chmod(0o755)
    return path


def test_script_keeps_what_programs_say(tmp_path: Path) -> None:
    kernel = recorded("transpose")
    assert kernel.sectors is not None
    lines = kernel.address // np.uint64(128)
    parts = (kernel.sectors.astype(np.uint64), 40), (kernel.access.astype(np.uint64), 44)
    events = lines | np.bitwise_or.reduce([part << np.uint64(by) for part, by in parts])
    events.tofile(tmp_path / "transpose.events")
    kernel.rows.astype(np.uint64).tofile(tmp_path / "transpose.ends")
    np.arange(256, dtype=np.int32).tofile(tmp_path / "transpose.sms")
    binary = program(tmp_path / "recorded", RECORDER)
    metrics = (*METRICS, "launch__shared_mem_config_size")
    program(tmp_path / "ncu", NCU % (metrics,))
    out = tmp_path / "report"
    done = subprocess.run(
        [sys.executable, ROOT / "tests/lab/inside/addresses.py", "--out", out, "--binary", binary],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "recorded: out of order" in done.stdout
    said = (out / "records.jsonl").read_text("utf-8").splitlines()
    names = [json.loads(line)["name"] for line in said]
    assert names[:3] == ["transpose", "spmv", "bfs"]  # kmeans is skipped, not those behind it
    found, sms = recorded_of(out, "bfs", kernel.instructions)
    for name in ("rows", "access", "address", "sectors", "compute"):
        assert np.array_equal(getattr(found, name), getattr(kernel, name)), name
    assert sms.tolist() == list(range(256))
    rows = measured_of(out, "h100")
    assert len(rows) == sum(len(group) for group, _ in GROUPS.values())
    assert rows[1].loads == pytest.approx(1001e3)


def test_script_records_only_small_blocks_if_asked(tmp_path: Path) -> None:
    binary = program(tmp_path / "recorded", "import sys; sys.exit('recorded: no GPU')")
    program(tmp_path / "ncu", NCU % (METRICS,))
    out = tmp_path / "report"
    done = subprocess.run(
        [sys.executable, ROOT / "tests/lab/inside/addresses.py", "--out", out, "--binary", binary,
         "--small-blocks"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.count("recorded: no GPU") == len(SMALL_BLOCKS)
    assert [file.name for file in out.glob("ncu-*.csv")] == ["ncu-small-blocks.csv"]
