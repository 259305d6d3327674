"""Programs that hung on an H100 or an H200 on purpose: what their captures say of it.

`recorded/programs.jsonl.xz` has one per line: its name, why it hangs by construction, and the lines
of its capture, without the code of kernels. Of those with too little room it has the launch, and
how many of its blocks never start. Programs whose code tells the kind are not among them.

`recorded/ranks.jsonl.xz` has programs of two ranks, which ran on two H200s: the lines of both
captures, without what was issued and has ended by its code.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from hangs.conftest import RECORDED

PROGRAMS = [
    json.loads(line)
    for line in lzma.open(RECORDED / "programs.jsonl.xz", "rt", encoding="utf-8")  # noqa: SIM115
]
RANKS = [
    json.loads(line)
    for line in lzma.open(RECORDED / "ranks.jsonl.xz", "rt", encoding="utf-8")  # noqa: SIM115
]
# Kernels that ran before, to warm up, are told from those that stay by their code alone.
WARMED_UP = {"room_004", "room_007"}


def test_kinds_are_all_there() -> None:
    kinds = {each["kind"] for each in PROGRAMS}
    assert kinds == {"host", "inside_kernel", "legacy_stream", "loading", "queue", "room"}
    assert len(PROGRAMS) == 92
    assert len(RANKS) == 19


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: str(each["name"]))
def test_kind_of_the_hang(program: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in program["lines"]), "utf-8")
    found = tb.hang(path)
    if program["kind"] == "inside_kernel":  # without code it may be slow
        assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "not_hanging"))
        return
    assert found.kind == program["kind"], found.text
    if found.kind == "room" and program["name"] not in WARMED_UP:
        row = found.stranded[0]
        assert row.name.startswith(program["launch"])
        assert (row.missing, row.blocks) == (program["missing"], program["blocks"])


@pytest.mark.parametrize("program", RANKS, ids=lambda each: str(each["name"]))
def test_kind_of_the_hang_of_ranks(program: dict[str, Any], tmp_path: Path) -> None:
    paths = [tmp_path / f"rank{number}.jsonl" for number in (0, 1)]
    for path, lines in zip(paths, program["ranks"], strict=True):
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    found = tb.hang(*paths)
    assert found.kind == program["kind"], found.text
    if found.kind == "room":
        assert found.stranded[0].cause == "shared_memory"
    if found.kind == "host":
        assert "which rank1.jsonl has not issued" in found.reason
