"""Each kind of result as the last line of a cell, and what a notebook gets to show."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import pytest

from helpers import ROOT
from tbsched import views

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

BEFORE = """
import tbsched as tb
kernel = tb.Launch(16, 256, 32, stream=0, duration=1e-4, name="<gemm>")
pair = tb.Launch(2, 32, 16, stream=0, duration=1e-6, meets="<x>")
timed = tb.Sequence([kernel, kernel])
held = tb.Sequence([tb.Launch(300, 256, 32, name="<gemm>")])
device = tb.device("rtx3090")
trace = tb.predict(held, device)
jobs = tb.periodic([tb.Task("<camera>", [tb.Launch(16, 256, 32, duration=1e-4)], period=1e-3)])
times = tb.predict(timed, device)
report = tb.fuzz(device, device, "most_room", max_examples=30, max_counterexamples=1, seed=1,
                 progress=False)
calibration = tb.calibrate("tx2", 3600.0, sequences=10, progress=False)
tb.save_traces(PLACE, [times])
profiled = tb.load_program(PLACE)
one = tb.sm.Variant("original", "saxpy", 12, "", 0, None, b"")
variants = tb.sm.Variants("saxpy", (one, one))
"""
# The kind of what is shown, and the last line of a cell. Pictures are image/png.
CELLS: Mapping[str, tuple[str, ...]] = {
    "text/html": (
        "timed",
        "device",
        "trace",
        "times",
        "trace.residents()",
        "tb.compare(trace, trace)",
        "tb.verify([trace], device)",
        "tb.compare_times(times, times)",
        'tb.predict_processes([timed, timed], "h200")',
        "tb.Meeting(trace, ((0,),), (True,))",
        "tb.what_if(timed, device)",
        "tb.best_order([kernel], device)",
        "jobs.responses(tb.predict(jobs.sequence, device, issue_times=jobs.issue_times))",
        "tb.Graph([tb.Launch(4, 64, 32, duration=1e-3)])",
        "tb.Partition((0, 1))",
        'tb.compare_devices(device, "h200")',
        "tb.forced_even(device, held.launches[0])",
        "tb.launch_configs(device, tb.Kernel(82 * 64, 16))",
        "tb.capacity(kernel, device)",
        "tb.capacities(kernel, device)",
        "tb.coresident([kernel], device)",
        "tb.coresident(tb.Sequence([pair, pair]), [device])",
        f"tb.hang({str(ROOT / 'tests' / 'hangs' / 'recorded' / 'room.jsonl')!r})",
        'tb.sm.Characterization({"name": "mine", "sms": 1}, ())',
        "variants",
        "tb.sm.search(variants, lambda each: lambda: 1e-3, progress=False)",
        "report",
        "profiled",
        "tb.explain(profiled, device)",
        "report.counterexamples[0]",
        "calibration",
        'tb.sm.simulate(tb.sm.preset("SCP", blocks=2))',
        'tb.sm.simulate_many(tb.sm.preset("SCP", blocks=2))',
    ),
    "image/png": (
        "tb.show.gantt(times)",
        "tb.show.sm_map(trace)",
        "tb.show.blocks(trace)",
        "tb.show.compared(trace, trace)",
        "tb.show.ladder([tb.verify([trace], device)])",
        "tb.show.resources(trace, 0)",
    ),
}
LINES = [(kind, line) for kind, lines in CELLS.items() for line in lines]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The outputs of each line."""
    new = nbformat.v4
    place = tmp_path_factory.mktemp("profile") / "times.jsonl"
    before = f"PLACE = {str(place)!r}\n{BEFORE}"
    cells = [new.new_code_cell(source) for source in (before, *(line for _, line in LINES))]
    notebook = new.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return {cell.source: cell.outputs for cell in notebook.cells}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("kind", "line"), LINES, ids=[line for _, line in LINES])
def test_notebook_shows_the_result(shown: dict[str, list[Any]], kind: str, line: str) -> None:
    (output,) = shown[line]
    assert output.output_type == "execute_result"
    data = output.data
    assert data["text/plain"].startswith(("<", "Sequence([", "Graph([", "Partition("))
    assert len(data["text/plain"]) < 500
    if kind == "text/html":
        assert ElementTree.fromstring(data[kind]).get("class") == "tbsched"
    else:
        assert base64.b64decode(data[kind]).startswith(b"\x89PNG")


@pytest.mark.filterwarnings("default")
def test_each_class_is_shown(shown: dict[str, list[Any]]) -> None:
    plain = [outputs[0].data["text/plain"] for outputs in shown.values() if outputs]
    for name in views.SHOWN:
        assert any(text.startswith((f"<{name}: ", f"{name}(")) for text in plain), name
