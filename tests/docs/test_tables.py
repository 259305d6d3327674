"""Tables in the documentation are generated: what a page says is what the code says.

A mismatch leaves the right page beside the old one, as ``.new``.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from cli.verbs import FUNCTIONS
from conformance.papers.differences import rows as difference_rows
from conformance.papers.figure3 import figure
from conformance.papers.gf100 import spreads
from conformance.papers.interference import rows as interference
from conformance.papers.kernel_order import rows as kernel_order
from docs.verbs import options_of
from sm.variants import score as variants
from tbsched import _core, unpacking
from tbsched.advice.launch_configs import Kernel, launch_configs
from tbsched.hangs.disassembler import disassembler
from tbsched.hardware.catalogue import ablations, device, devices
from tbsched.hardware.device_file import INHERITED, PROVENANCES
from tbsched.importers import captured_files
from tbsched.prediction.predict import launch_orders
from tbsched.program.sequence import Launch
from tbsched.sm.parameters import PARAMETERS
from tbsched.sm.parameters import config as simulated
from tbsched.sm.running import schedulers
from tbsched.traces.cases import cases
from tbsched.traces.files import MAX_LINE_BYTES
from tbsched.views.words import launch_words

DOCS = Path(__file__).parents[2] / "docs"


def page_named(name: str) -> Path:
    """The page, in whichever part of the documentation it is."""
    (path,) = DOCS.rglob(name)
    return path


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    columns = list(header)
    lines = [columns, ["---"] * len(columns), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def devices_table() -> str:
    header = (
        "name",
        "GPU",
        "compute capability",
        "SMs",
        "GPCs",
        "warps per SM",
        "blocks per SM",
        "shared memory per SM, KB",
        "policy",
        *PROVENANCES,
        INHERITED,
    )
    rows = []
    for name in devices():
        spec = device(name)
        kinds = Counter(origin.kind for origin in spec.provenance.values())
        rows.append(
            (
                f"`{name}`",
                spec.title,
                spec.compute_capability,
                spec.sms,
                len(spec.gpcs) or "unknown",
                spec.warps_per_sm,
                spec.blocks_per_sm,
                spec.shared_memory_configurations[-1] // 1024,
                f"`{spec.policy}`",
                *(kinds[kind] for kind in (*PROVENANCES, INHERITED)),
            )
        )
    return table(header, rows)


def ablations_table() -> str:
    return table(("suffix", "what changes"), ((f"`-{k}`", text) for k, text in ablations().items()))


def orders_table() -> str:
    rows = ((f"`{row.name}`", row.summary, row.source) for row in launch_orders())
    return table(("launch order", "which launch is considered first", "source"), rows)


def latencies_table() -> str:
    schema = tomllib.loads((DOCS.parent / "schema" / "device.toml").read_text("utf-8"))
    h200 = device("h200")
    rows = (
        (f"`{name}`", field["doc"], f"{getattr(h200, name):,}")
        for name, field in schema["scheduler"].items()
        if field["type"] == "ns"
    )
    return table(("latency", "how long it takes", "H200, ns"), rows)


def cases_table() -> str:
    header = ("case", "mechanism", "sequence", "placed before the next event", "differs for")
    rows = []
    for case in cases("hopper"):
        number = -1
        events = []
        for event in case.trace.sequence:
            if isinstance(event, Launch):
                number += 1
                events.append(f"K{number}: {launch_words(event)}")
            else:
                events.append(f"K{event.launch} leaves")
        placed = ", ".join(str(placement.placed) for placement in case.trace)
        without = "" if case.ablation is None else "/".join(filter(None, case.ablation))
        rows.append(
            (case.name, case.mechanism, "; ".join(events), placed, without and f"`{without}`")
        )
    return table(header, rows)


def figure3_table() -> str:
    header = ("streams", "`xavier`", "`pegasus`", "`h200`")
    shares: dict[int, list[str]] = {}
    for name in ("xavier", "pegasus", "h200"):
        for bar in figure(name):
            share = 100 * bar.round_robin / bar.configurations
            shares.setdefault(bar.streams, []).append(f"{share:.1f}")
    return table(header, ((streams, *row) for streams, row in shares.items()))


def gf100_table() -> str:
    rows = (
        (f"`{row.policy}`", f"{row.t1_right} of {row.t1}", f"{row.t2_right} of {row.t2}")
        for row in spreads()
    )
    return table(("policy", "T_1 right", "T_2 right"), rows)


def configs_example() -> str:
    rows = str(launch_configs("h200", Kernel(202752, 40))).splitlines()[:14]
    return "\n".join(["```", "$ tbsched configs 202752 --registers 40", *rows, "...", "```", ""])


def differences_table() -> str:
    header = ("launches", "ns", "H100", "predicted", "H200", "predicted")
    return table(header, difference_rows())


def schedulers_table() -> str:
    rows = ((f"`{row.name}`", row.summary) for row in schedulers())
    return table(("scheduler", "which warp issues"), rows)


def parameters_table() -> str:
    names = ("owl-table1", "h200-like", "h100-like")
    gpus = [simulated(name) for name in names]
    rows = []
    for row in PARAMETERS.values():
        source = gpus[0].provenance[row.name]
        values = [
            str(bool(gpu[row.name])).lower() if row.is_flag else gpu[row.name] for gpu in gpus
        ]
        where = f"{source.kind}: {source.source}"
        rows.append((row.section, f"`{row.name}`", row.doc, values[0], where, *values[1:]))
    first, *others = (f"`{name}`" for name in names)
    return table(("section", "parameter", "what", first, "its source", *others), rows)


def counters_table() -> str:
    rows = ((f"`{name}`", doc) for name, doc in _core.sm_counters())
    return table(("counter", "what"), rows)


def limits_list() -> str:
    line, least = (limit // 2**20 for limit in (MAX_LINE_BYTES, unpacking.MAX_BYTES))
    assert unpacking.LINES_PER_BYTE == 1
    times, lines = f"{unpacking.BYTES_PER_BYTE:,}", f"{unpacking.MAX_LINES:,}"
    return (
        f"- A line has at most {line} MiB.\n"
        f"- A compressed file may unpack to {least} MiB, or to {times} times its compressed size "
        "if that is more.\n"
        f"- It may unpack to {lines} lines, or to one line for each compressed byte if that is "
        "more.\n"
    )


HANGS = DOCS.parent / "tests" / "hangs" / "recorded" / "room.jsonl"


def hang_capture() -> str:
    """What `tbsched capture --hang-after 5 --kill` prints of a recorded program."""
    found = tb.hang(HANGS)
    launches = captured_files.launches_of(HANGS)
    return (
        f"```text\ntbsched capture: {found.kind}: {found.reason}; see run.hang.txt\n"
        f"tbsched capture: it hangs, so it was ended\nwrote run.jsonl: {launches} launches\n```\n"
    )


def hang_answer() -> str:
    """What `tbsched hang` prints of a recorded program."""
    if disassembler() is None:
        pytest.skip("without nvdisasm it does not say that the kernels spin")
    lines = [line.rstrip() for line in tb.hang(HANGS).text.splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


# page -> marker -> what stands between `<!-- marker:begin -->` and `<!-- marker:end -->`
PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "command-line.md": {
        f"{name.replace(' ', '-')}-options": partial(options_of, verb)
        for name, verb in FUNCTIONS.items()
    },
    "simulating.md": {
        "schedulers": schedulers_table,
        "parameters": parameters_table,
        "counters": counters_table,
    },
    "devices.md": {"devices": devices_table, "ablations": ablations_table},
    "trace-format.md": {"limits": limits_list},
    "hopper.md": {"cases": cases_table},
    "even-spread.md": {"configs": configs_example},
    "how-to/hang.md": {"hang-capture": hang_capture, "hang": hang_answer},
    "how-to/variants.md": {
        "gains": lambda: table(*variants.found()),
        "much": lambda: table(*variants.much()),
    },
    "hierarchy.md": {"interference": lambda: table(*interference())},
    "kernel-order.md": {"order": lambda: table(*kernel_order())},
    "inside-an-sm.md": {"outputs": lambda: table(*variants.outputs())},
    "papers.md": {
        "figure3": figure3_table,
        "gf100": gf100_table,
        "differences": differences_table,
    },
    "time.md": {"orders": orders_table, "latencies": latencies_table},
}


def regenerated(page: str, text: str) -> str:
    for marker, render in PAGES[page].items():
        begin, end = f"<!-- {marker}:begin -->\n", f"<!-- {marker}:end -->\n"
        assert text.count(begin) == text.count(end) == 1, f"{page}: one {begin}, one {end}"
        before, rest = text.split(begin)
        text = before + begin + render() + end + rest.split(end)[1]
    return text


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_a_page_are_what_the_code_says(page: str) -> None:
    path = page_named(page)
    text = path.read_text(encoding="utf-8")
    expected = regenerated(page, text)
    if text != expected:
        new = path.with_name(f"{path.name}.new")
        new.write_text(expected, encoding="utf-8")
        pytest.fail(f"{path} is out of date: read {new}, then move it over the page")


def test_generated_tables_have_a_row_for_every_device_and_ablation() -> None:
    assert devices_table().count("\n") == 2 + len(devices())
    assert ablations_table().count("\n") == 2 + len(ablations())


def test_program_that_the_page_shows_runs() -> None:
    text = page_named("time.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    prediction = names["prediction"]
    assert prediction.concurrent(1, 2)
    assert prediction.waits["cause"].tolist() == ["stream", "event", "turn", "configuration"]


def test_device_file_that_the_page_shows_loads(tmp_path: Path) -> None:
    text = page_named("devices.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(# rtx3080\.toml\n.*?)```", text, flags=re.DOTALL)
    path = tmp_path / "rtx3080.toml"
    path.write_text(example, encoding="utf-8")
    assert (device(path).name, device(path).sms, device(path).tpcs) == ("rtx3080", 68, 34)
