"""The script that runs the programs that hang, with stand-ins for the compiler and tbsched."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent

COMPILER = """#!/bin/bash
while [ "$1" != -o ]; do shift; done
cat > "$2" <<'END'
#!/bin/bash
while [ ! -e "$HANGS_GO" ]; do sleep 0.01; done
if [ "$1" = fixed ]; then echo ended; exit 0; fi
sleep 60
END
chmod +x "$2"
"""

TBSCHED = """#!/bin/bash
if [ "$1" = hang ]; then
  echo '{"kind": "room", "reason": "no room", "calls": [], "stranded":'
  echo '[{"name": "reduce(float*)", "missing": 24, "blocks": 420, "cause": "warps"}]}'
  exit 1
fi
while [ "$1" != -o ]; do shift; done
file=$2
"$4" &
while [ ! -e "$HANGS_GO" ]; do sleep 0.01; done
echo "{}" > "$file"
[[ "$4" == *long* ]] && wait
kill $!
exit 1
"""


def test_every_program_has_a_truth() -> None:
    sets = runpy.run_path(str(HERE / "truth.py"))["SETS"]
    truth = {name: each for of_set in sets.values() for name, each in of_set.items()}
    files = {file.stem for file in (HERE / "programs").iterdir() if file.suffix in (".cu", ".py")}
    assert set(truth) == files - {"begin", "turn"}
    kinds = [Counter(each.kind for each in of_set.values()) for of_set in sets.values()]
    assert [each.total() for each in kinds] == [62, 70, 60, 60, 60]
    assert [each["not_hanging"] for each in kinds] == [10, 15, 13, 13, 13]
    assert sum(map(len, sets.values())) == len(truth)
    for each in truth.values():
        assert (each.kind == "room") == (each.resource is not None)


def test_runs_judges_and_leaves_nothing_running(tmp_path: Path) -> None:
    tools = {"NVCC": COMPILER, "TBSCHED": TBSCHED}
    for name, script in tools.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, **{name: str(tmp_path / name) for name in tools}}
    only = ["notify_all", "one_connection_long"]
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, HERE / "run.py", out, "--slow", "0", "--only", *only],
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((out / "results.json").read_text("utf-8"))["programs"]
    assert results["notify_all"]["fixed_ended"]
    assert results["notify_all"]["capture_ended"]
    assert not results["one_connection_long"]["capture_ended"]
    with tarfile.open(out / "captures.tar.xz") as archive:
        assert sorted(archive.getnames()) == sorted(f"{name}.jsonl.xz" for name in only)
    started = str(tmp_path).encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            assert started not in (folder / "environ").read_bytes()
        except OSError:
            continue
    score = subprocess.run(
        [sys.executable, HERE / "score.py", out / "results.json"], capture_output=True, text=True
    ).stdout
    assert "rooms with launch, blocks and resource right: 1 of 1" in score
    assert "all            1 of 2" in score
