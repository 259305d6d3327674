"""Names that nobody knows: the message ends with the one that was meant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

import tbsched as tb
from tbsched.errors import did_you_mean, shown
from tbsched.traces.cases import cases

ONE = tb.Sequence([tb.Launch(1, 32, 16)])
H200 = tb.device("h200")
TRACE = tb.predict(ONE, H200)


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (lambda: tb.device("H20"), "h200"),
        (lambda: tb.device("rtx-3090"), "rtx3090"),
        (lambda: tb.device("h200-no-warpskip"), "no-warp-skip"),
        (lambda: tb.device("h2000-no-warp-skip"), "h200-no-warp-skip"),
        (lambda: tb.predict(ONE, H200, "hoper"), "hopper"),
        (lambda: dataclasses.replace(H200, launch_order="left_over").initial_states(), "leftover"),
        (lambda: cases("Hoppper"), "hopper"),
        (lambda: tb.compare(TRACE, TRACE).agrees("exakt"), "exact"),
        (lambda: tb.Drawn("lognorm", 1.0), "lognormal"),
        (lambda: tb.fuzz("rtx3090", "rtx3090", draw="natve", progress=False), "native"),
        (lambda: tb.Sequence.from_json('[{"lunch":{}}]'), "launch"),
    ],
)
def test_the_name_that_was_meant_is_said(ask: Callable[[], object], meant: str) -> None:
    with pytest.raises(ValueError, match=f"; did you mean '{meant}'[?]$"):
        ask()


@pytest.mark.parametrize(("section", "key"), [("limits", "warp_per_sm"), ("topologie", "sms")])
def test_keys_of_device_files_have_names_too(tmp_path: Path, section: str, key: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "rtx3090"\n[{section}]\n{key} = 1\n')
    with pytest.raises(ValueError, match=r"did you mean '(limits\.warps_per_sm|topology)'[?]$"):
        tb.device(path)


def test_a_value_of_many_lines_is_shown_on_one() -> None:
    text = shown(tb.Sequence([tb.Launch(8, 64, 32, name="two\nlines"), tb.Release(0)]))
    assert text == (
        r"Sequence([ Launch(blocks=8, threads=64, registers=32, name='two\nlines'), Release(0), ])"
    )


@pytest.mark.parametrize("given", ["", "nothing like it", "native", None, 3, "x" * 10**6])
def test_nothing_is_said_where_nothing_is_alike_or_nothing_is_wrong(given: object) -> None:
    assert did_you_mean(given, ["native", "auto"]) == ""
