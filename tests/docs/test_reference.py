"""What the pages of the reference show is so."""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import tbsched
import tbsched.calibration
import tbsched.campaigns
import tbsched.sm
import tbsched.strategies
from helpers import ROOT
from tbsched.cli.app import VERBS, main
from tbsched.cli.console import AGREEMENT, DISAGREEMENT
from tbsched.comparison.compare import compare
from tbsched.prediction.predict import predict
from tbsched.program.events.kinds import KINDS
from tbsched.program.sequence import Launch
from tbsched.traces.files import load_traces
from tbsched.traces.records import _ARRAYS as COLUMNS
from tbsched.traces.records import TRACE_VERSION

REFERENCE = ROOT / "docs" / "reference"
PACKAGES = (tbsched, tbsched.strategies, tbsched.campaigns, tbsched.calibration, tbsched.sm)


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def block(text: str, language: str) -> str:
    """The first block of the page in a language."""
    found = re.search(rf"(?ms)^```{language}\n(.*?)^```$", text)
    assert found
    return found[1]


def test_trace_file_that_the_page_shows_loads(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(block(page("trace-format.md"), "json"), "utf-8")
    (trace,) = load_traces(tmp_path / "one.jsonl")
    prediction = predict(trace.sequence, "xavier")
    assert compare(prediction, trace).exact
    assert [p.limiter for p in trace] == [p.limiter for p in prediction]
    assert [p.final_smid.tolist() for p in trace] == [p.final_smid.tolist() for p in prediction]


def test_page_of_the_trace_format_has_every_key() -> None:
    keys = set(re.findall(r"`(\w+)`", page("trace-format.md")))
    needed = {*COLUMNS, *(kind.key for kind in KINDS), *(field.name for field in fields(Launch))}
    assert needed <= keys
    assert f"version of the format, {TRACE_VERSION} or" in page("trace-format.md")


def test_page_of_the_workload_format_has_every_array(tmp_path: Path) -> None:
    kernel = tbsched.sm.preset("SCP", blocks=1, loads=1)
    whole = replace(
        kernel, address=kernel.address * np.uint64(2), sectors=np.ones(len(kernel.access), np.uint8)
    )
    tbsched.sm.save_workload(whole, tmp_path / "one.npz")
    rows = re.findall(r"(?m)^\| `(\w+)` \|", page("workload-format.md"))
    with np.load(tmp_path / "one.npz") as held:
        assert sorted(rows) == sorted(held.files)


def test_every_public_name_is_on_a_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in (REFERENCE / "api").glob("*.md"))
    entries = re.findall(r"\.\. (?:auto\w+|py:data):: ([\w.]+)", pages)
    shown = {name.rsplit(".", 1)[1] for name in entries}
    assert ".. automodule:: tbsched.show\n   :members:" in pages
    public = {name for package in PACKAGES for name in package.__all__}
    assert public - shown == set()
    functions = [
        getattr(package, name)
        for package in PACKAGES
        for name in package.__all__
        if inspect.isfunction(getattr(package, name))
    ]
    returned = {function.__annotations__["return"] for function in functions}
    assert "Periodic" in returned
    assert {name for name in returned if re.fullmatch(r"[A-Z]\w+", name)} - shown <= {
        "None", "StructuredArray",
    }  # fmt: skip


def test_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page("command-line.md")
    assert [verb for verb in VERBS if f"tbsched {verb} " not in text] == []
    monkeypatch.chdir(tmp_path)
    Path("two.json").write_text(block(text, "json"), "utf-8")
    for command, shown in re.findall(r"(?ms)^```console\n\$ (tbsched .*?)\n(.*?)^```$", text):
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code in (AGREEMENT, DISAGREEMENT), printed.err
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(shown, printed.out, flags)
        assert same, f"{command}\n{printed.out}"


def test_pages_link_terms_that_the_glossary_has() -> None:
    terms = {term.lower() for term in re.findall(r"(?m)^(\w.*)\n  .*$", page("glossary.md"))}
    missing = [
        f"{path.name}: {name}"
        for path in sorted((ROOT / "docs").rglob("*.md"))
        for name in re.findall(r"{term}`(?:[^`<]*<)?([^`>]+)>?`", path.read_text("utf-8"))
        if " ".join(name.lower().split()) not in terms
    ]
    assert missing == []


def test_terms_of_the_glossary_are_short_and_in_order() -> None:
    terms = re.findall(r"(?m)^(\w.*)\n  (.*)$", page("glossary.md"))
    names = [name for name, _ in terms]
    assert "thread block" in names
    assert names == sorted(names, key=str.lower)
    assert [name for name, words in terms if len(re.findall(r"\.(?: |$)", words)) != 2] == []


def test_the_page_of_trace_files_names_the_versions_that_are_read() -> None:
    text = page("trace-format.md")
    assert f"`trace format version {TRACE_VERSION + 1}; this tbsched reads versions 1 to" in text
    assert f"reads versions 1 to {TRACE_VERSION}: install" in text


def test_the_page_of_time_has_every_cause_of_a_timed_wait() -> None:
    text = (ROOT / "docs" / "explanation" / "time.md").read_text("utf-8")
    table = text.partition("| cause |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"\n\|[^|]*\|", table))))
    # Causes in held sequences, in a policy of one's own, and in a program that hangs.
    elsewhere = {"none", "policy", "partition", "host"}
    assert named >= set(tbsched._core.CAUSES) - elsewhere
