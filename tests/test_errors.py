"""Names that nobody knows: the message ends with the one that was meant."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from tbsched.campaigns import record
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


def test_value_that_is_nested_too_deeply_to_show_is_named() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "list that is nested too deeply"


def test_sequence_of_a_value_as_deep_as_json_can_be_is_refused() -> None:
    for depth in range(800, 1000):  # some are read, and too deep for a message
        text = f'[{{"launch":{{"blocks":{"[" * depth}{"]" * depth}}}}}]'
        with pytest.raises((ValueError, TypeError)):
            tb.Sequence.from_json(text)


LONG = "x" * 10_000
KERNEL = tb.Launch(1, 32, 16, duration=1e-5)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: tb.Sequence.from_json(f'[{{"launch":{{}},"{LONG}":1}}]'),
        lambda: tb.Sequence([tb.GraphLaunch(tb.Graph([KERNEL, tb.MemFree(LONG)]), stream=0)]),
        lambda: tb.Graph([KERNEL, tb.MemFree(LONG), tb.MemFree(LONG)]),
        lambda: tb.predict(tb.Sequence([tb.Launch(1, 32, 16, meets=LONG, duration=1e-5)]), H200),
    ],
)
def test_a_long_name_is_cut(ask: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"x\.\.\.") as refused:
        ask()
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("given", ["", "nothing like it", "native", None, 3, "x" * 10**6])
def test_nothing_is_said_where_nothing_is_alike_or_nothing_is_wrong(given: object) -> None:
    assert did_you_mean(given, ["native", "auto"]) == ""


WORKLOAD = tb.sm.preset("SCP", blocks=2, loads=4)
TIMED = tb.Sequence([tb.Launch(1, 32, 16, duration=1e-5, name="a")])
PREDICTED = tb.predict(TIMED, H200)
TWO: Any = np.array([0.0, 1.0])  # true and false at once
ENDLESS = range(10**12)  # memory would be full long before the last of it is seen


def campaign(**options: Any) -> object:
    return tb.fuzz("tx2", "tx2", progress=False, **options)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda: dataclasses.replace(TRACE, transfer_ns=[]),
            "Trace.transfer_ns: an array is needed",
        ),
        (lambda: dataclasses.replace(TRACE, call_ns=3), "Trace.call_ns: an array is needed, got 3"),
        (lambda: dataclasses.replace(TRACE, waits="x"), "Trace.waits: an array is needed, got 'x'"),
        (lambda: dataclasses.replace(TRACE, id=[0.0]), "Trace.id: a str is needed, got [0.0]"),
        (lambda: dataclasses.replace(TRACE, extra=3), "Trace.extra: a dict is needed, got 3"),
        (lambda: tb.save_device("x.toml", H200, heading=3), "save_device.heading: a str is needed"),
        (lambda: tb.sm.save_workload(3, "x.npz"), "save_workload.workload: a Workload is needed"),
        (lambda: tb.sm.simulate_many(3), "simulate_many.workloads: a list is needed, got 3"),
        (lambda: tb.sm.simulate_many([WORKLOAD], 3), "simulate_many.schedulers: a list is needed"),
        (lambda: tb.sm.simulate_many([WORKLOAD], configs=3), "simulate_many.configs: a list"),
        (lambda: tb.sm.simulate_many([WORKLOAD], ENDLESS), "simulate.scheduler: a name or a class"),
        (lambda: tb.sm.simulate_many(ENDLESS), "simulate.workload: a name, a path or a Workload"),
        (lambda: tb.sm.simulate_many([WORKLOAD], "\ud800"), "scheduler: '\\ud800' is unknown"),
        (lambda: tb.sm.Ratio.of(3), "Ratio.ratios: a list is needed, got 3"),
        (lambda: tb.sm.Ratio.of([None, None]), "Ratio.ratios: a number is needed, got None"),
        (lambda: tb.sm.Ratio.of([float("nan")]), "Ratio.ratios: nan is less than 0, or no number"),
        (lambda: tb.sm.Ratio.of([]), "Ratio.ratios: none; one or more are needed"),
        (lambda: TRACE.residents().of("x"), "residents.sm: an integer is needed, got 'x'"),
        (
            lambda: tb.makespan_bounds(TIMED, "h200", issue_times=3),
            "makespan_bounds.issue_times: a list is needed, got 3",
        ),
        (lambda: tb.save_traces("x.jsonl", int), "save_traces.traces: a list is needed"),
        (lambda: tb.save_traces("x.jsonl", ENDLESS), "save_traces.traces[0]: a Trace is needed"),
        (lambda: tb.Sequence(ENDLESS), "Sequence.events[0]: Launch, Release"),
        (
            lambda: tb.Graph(ENDLESS),
            "Graph.nodes[0]: a Launch, Copy, Memset, HostFunction, RecordEvent, WaitEvent",
        ),
        (lambda: tb.best_order(ENDLESS, "h200"), "kernels[0]: a Launch is needed, got 0"),
        (lambda: tb.coresident(ENDLESS, "h200"), "launches[0]: a Launch is needed, got 0"),
        (
            lambda: tb.predict_processes(ENDLESS, "h200"),
            "predict_processes.programs[0]: a Sequence is needed, got 0",
        ),
        (lambda: tb.sm.preset(["a"]), "preset.name: a str is needed, got ['a']"),
        (
            lambda: PREDICTED.response_times(5),
            "response_times.issue_times: a list is needed, got 5",
        ),
        (
            lambda: tb.predict(TIMED, "h200", interference=TWO),
            "interference: array([0., 1.]) is neither None nor",
        ),
        (
            lambda: tb.Kernel(1000, 32).launch(64, TWO),
            "Launch.blocks: an integer is needed, got array([0., 1.])",
        ),
        (lambda: tb.Kernel(1000, 32).launch(64, 0), "Launch.blocks: 0 is outside 1.."),
        *(
            (lambda name=name: campaign(**{name: TWO}), f"{name}: True or False is needed, got arr")
            for name in ("until_full", "steer", "target_fullness", "past_refusal")
        ),
        (lambda: campaign(draw=TWO), "draw: array([0., 1.]) is not one of auto, native"),
        (lambda: campaign(max_seconds=math.nan), "max_seconds: nan is less than 0, or no number"),
        (lambda: record("tx2", "x.jsonl", 0, predictor="tx2"), "count: 0 is less than 1"),
        (
            lambda: tb.sm.slowdowns(ENDLESS, "h200", {}),
            "slowdowns.launches[0]: a Launch is needed, got 0",
        ),
    ],
)
def test_a_wrong_argument_is_named(
    ask: Callable[[], object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError)) as caught:
        ask()
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_the_interval_of_many_ratios_is_the_exact_one() -> None:
    # The binomial distribution, by integers.
    for count in (6, 7, 100, 1001):
        tail, k = 0, 0
        while 40 * (tail := tail + math.comb(count, k)) <= 2**count:
            k += 1
        found = tb.sm.Ratio.of(range(1, count + 1))
        assert (found.low, found.high) == (k, count - k + 1)


HOSTILE = "\x1b]0;PWNED\x07\u202e\u2066\u009b31m"
NAMED: dict[str, Callable[[str], object]] = {
    "a policy": lambda name: tb.predict(ONE, H200, name),
    "a launch order": lambda name: dataclasses.replace(H200, launch_order=name).initial_states(),
    "a scheduler": lambda name: tb.sm.simulate(WORKLOAD, name),
    "a layout": lambda name: dataclasses.replace(
        H200, mechanisms=dataclasses.replace(H200.mechanisms, registers=name)
    ).initial_states(),
    "a device": tb.device,
    "a device file": lambda name: tb.device(f"{name}.toml"),
    "a file extended": lambda name: tb.device(f"{name}-extends.toml"),
    "a config": lambda name: tb.sm.config(f"{name}.toml"),
    "a program": lambda name: tb.load_program(f"{name}.json"),
    "traces": lambda name: tb.load_traces(f"{name}.json"),
    "a workload": lambda name: tb.sm.load_workload(f"{name}.json"),
    "a cubin": lambda name: tb.launch_of(f"{name}.json", grid=1, block=32),
    "profiles": lambda name: tb.sm.load_profiles(f"{name}.json"),
    "counters": lambda name: tb.sm.load_ncu(f"{name}.json", "h200"),
    "no program": lambda name: tb.load_program(name),
    "no workload": lambda name: tb.sm.load_workload(name),
    "a launch": lambda name: tb.sm.slowdowns(
        [tb.Launch(1, 32, 16, duration=1.0, name=name)], "h200", {}
    ),
    "others beside": lambda name: tb.capacity(
        tb.Launch(1, 32, 16), "h200", beside=[tb.Launch(10**6, 1024, 32, name=name * 1000)]
    ),
    "too large for a device": lambda name: tb.predict(
        tb.Sequence([tb.Launch(1, 1024, 255)]), tb.device(f"{name}-good.toml")
    ),
}


@pytest.mark.parametrize("kind", NAMED)
def test_no_message_has_characters_that_a_terminal_obeys(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for ending in ("json", "toml"):
        Path(f"{HOSTILE}.{ending}").write_text("{]")
    Path(f"{HOSTILE}-extends.toml").write_text('extends = "nothing\\u001b\\u202e"')
    tb.save_device(f"{HOSTILE}-good.toml", H200)
    with pytest.raises((ValueError, OSError)) as caught:
        NAMED[kind](HOSTILE)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
