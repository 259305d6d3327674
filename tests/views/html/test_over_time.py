"""Pictures over time: profiles and their gaps, open DRAM rows, moments; and a witness's map."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

import tbsched as tb
from profiled import profiled
from tbsched import views
from tbsched.views.layout.lanes import spans_by_stream, spans_measured
from views.gallery import GALLERY, KERNELS


def drawn(value: object, label: str) -> list[str]:
    """The titles of what is drawn in the picture with this label."""
    root = ElementTree.fromstring(views.html(value))
    (picture,) = (svg for svg in root.iter("svg") if svg.get("aria-label") == label)
    return [title.text or "" for title in picture.iter("title")]


def test_profile_is_drawn_in_the_rows_of_its_prediction() -> None:
    program = profiled(tb.Sequence(KERNELS[:4]), "h200")
    measured = spans_measured(program)
    predicted = spans_by_stream(tb.predict(program.sequence, "h200", host=program.host))
    assert measured.titles == predicted.titles
    assert measured.row.tolist() == predicted.row.tolist()
    assert np.array_equal(measured.begin_ns, program.measured["start_ns"])
    assert len(drawn(program, "as measured")) == 4


def test_short_kernels_of_a_long_program_are_a_pixel_wide_without_a_frame() -> None:
    events = [tb.Launch(132, 256, 32, stream=0, duration=2e-6, name="k")] * 50
    found = tb.explain(profiled(tb.Sequence(events), "h200", 1e-3), "h200")
    root = ElementTree.fromstring(views.html(found))
    for label in ("as measured", "as predicted"):
        (picture,) = (svg for svg in root.iter("svg") if svg.get("aria-label") == label)
        (spans,) = (g for g in picture.iter("g") if g.get("class") == "cut")
        shapes = [path for path in spans.iter("path") if path.get("d")]
        assert [path.get("class") for path in shapes] == ["thin"] * 50
        widths = re.findall(r"h(\d+)", "".join(path.get("d", "") for path in shapes))
        assert all(9 <= int(width) <= 11 for width in widths)
    assert ".cut .thin{stroke:none" in views.html(found).replace(" {", "{").replace(": ", ":")


def test_gaps_are_drawn_with_their_reasons() -> None:
    found = tb.explain(profiled(tb.Sequence(KERNELS[:4]), "h200"), "h200")
    reasons = drawn(found, "gaps as measured")
    assert len(reasons) == len(found.gaps)
    assert all("held up behind" in words or "for SMs" in words for words in reasons)
    assert len(drawn(found, "as predicted")) == len(drawn(found, "as measured")) == 4


def test_witness_is_drawn_sm_by_sm() -> None:
    found = GALLERY["coresidency"]()
    tiles = drawn(found, "Blocks on each SM")
    assert len(tiles) == 132
    assert sum("1 block, 0 beside" in words for words in tiles) == 116


def test_each_row_that_was_opened_is_drawn() -> None:
    found = tb.sm.simulate(tb.sm.preset("SCP", blocks=8), "round_robin", commands=True)
    assert found.commands is not None
    opened = found.commands[(found.commands["controller"] == 0) & (found.commands["kind"] == 0)]
    assert drawn(found, "open rows of DRAM") == [
        f"row {row}" for row in dict.fromkeys(np.unique(opened["row"]).tolist())
    ]
    assert len(drawn(found, "blocks on the cores")) == 8
    awake = tb.sm.simulate(tb.sm.preset("SCP", blocks=8), "round_robin", warps=True)
    assert awake.warps is not None
    warps = sorted(set(awake.warps["warp"][awake.warps["core"] == 0].tolist()))
    assert drawn(awake, "warps that can issue") == [f"warp {number}" for number in warps]


def test_turns_and_launches_of_processes_are_on_one_clock() -> None:
    program = tb.Sequence([tb.Launch(132, 1024, 32, stream=0, duration=3e-3, name="gemm")])
    found = tb.predict_processes([program, program], "h200")
    assert drawn(found, "turns of the processes") == ["process 0", "process 1"]
    for number in range(2):
        assert len(drawn(found, f"launches of process {number}")) == 1
    page = ElementTree.fromstring(views.html(found))
    ticks = [
        [text.text for text in picture.iter("text") if (text.text or "").endswith(" ms")]
        for picture in page.iter("svg")
    ]
    assert len(ticks) == 3
    assert ticks[0] == ticks[1] == ticks[2] != []


def test_each_group_that_met_has_a_line() -> None:
    trace = tb.predict(tb.Sequence([tb.Launch(4, 32, 16)] * 2), "h200")
    page = views.html(tb.Meeting(trace, ((0,), (1,)), (True, False)))
    assert "group 0 has met: launch 0" in page
    assert "group 1 hangs: launch 1" in page


def test_each_moment_has_a_map_and_one_is_chosen() -> None:
    held = tb.Sequence([tb.Launch(132, 1024, 32), tb.Launch(66, 512, 32), tb.Release(0)])
    timed = tb.Sequence([tb.Launch(264, 1024, 32, stream=0, duration=1e-4)] * 3)
    for sequence, moments in ((held, 3), (timed, 10)):
        root = ElementTree.fromstring(views.html(tb.predict(sequence, "h200")))
        (form,) = root.iter("form")
        chosen = [each.get("checked") is not None for each in form.iter("input")]
        assert chosen == [False] * (moments - 1) + [True]
        maps = [group for group in form.iter("g") if (group.get("class") or "").startswith("m ")]
        areas = [sum((path.get("d") or "").count("M") for path in group) for group in maps]
        assert len(areas) == moments
        assert areas == [132, 198, 66] if moments == 3 else min(areas) > 0


def test_each_measured_opcode_has_two_bars() -> None:
    page = views.html(tb.sm.measured("h200"))
    assert page.count("<span>fp64.fma</span>") == 2
    assert page.count("<span>int32.min</span>") == 1  # nobody knows when its result can be read
