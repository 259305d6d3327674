"""The C++ interface used wrongly: each way throws std::invalid_argument, says so and goes on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from cpp_library import built
from tbsched.hardware.catalogue import device

FOLDER = Path(__file__).parent / "misuse"
# What exceptions say beyond a text of MESSAGES: a value that is out of its range.
GOT = {
    "timed: times of issue descend": "got 2, number 1 is 4",
    "timed: a negative time of issue": "got 1, number 0 is -1",
    "timed: a gap too few": "got 1",
    "timed: a negative gap": "got 1, number 0 is -1",
    "timed: a negative interval": "0..",
    "held: copy": "got one after 0 launches",
}
NOT_HELD = "does not hold this footprint: that has left, or is another launch's"

# Each way to go wrong, and what the exception says.
MESSAGES = {
    "leave twice": f"launch 0: it {NOT_HELD}",
    "leave twice, the room taken": f"launch 0: it {NOT_HELD}",
    "leave of another launch": f"launch 1: it {NOT_HELD}",
    "leave of no block": f"launch 0: it {NOT_HELD}",
    "leave before any block came": f"launch 0: it {NOT_HELD}",
    "leave of an unknown launch": "launch 7: there is none; 0 have been added",
    "leave of a negative launch": "launch -1: there is none; 0 have been added",
    "enqueue an unknown launch": "launch 0: there is none; 0 have been added",
    "enqueue twice": "launch 0: it is enqueued already",
    "enqueue what has run": "launch 0: it is enqueued already",
    "demand of an unknown launch": "launch 1: there is none; 0 have been added",
    "placed_whole of an unknown launch": "launch -2: there is none; 0 have been added",
    "add 128 warps": "launch 0: threads: 4096 is outside 1..1024, what a launch on h200 can",
    "add no blocks": "launch 0: blocks: 0 is outside 1..2147483647, what a launch on h200",
    "add negative local memory": "launch 0: local_memory: -1 is outside 0..16777216 bytes",
    "add 2 GB of local memory": "launch 0: local_memory: 2147483647 is outside 0..16777216 bytes",
    "add a carveout beyond 100 percent": "launch 0: carveout: 101 is outside 0..100 percent",
    "add a cluster that does not divide": (
        "launch 0: cluster: must be positive and divide blocks, 4; got 3"
    ),
    "place while it places": "place: it is under way; an observer must not begin another",
    "memory for too few blocks": "launch 0: memory: 2 is less than for all 3 blocks that wait",
    "held: no observer": "observers: one of them is null",
    "held: release an unknown launch": "release of launch 1: not there, of 1 launches so far",
    "held: release a negative launch": "release of launch -1: not there, of 1 launches so far",
    "held: release twice": "release of launch 0: it is released already",
    "held: a duration": "launch 0: duration: here blocks stay until they are released",
    "held: the legacy stream": "launch 0: stream: the legacy stream needs launches with durations",
    "held: a negative stream": "launch 0: stream: -5 must not be negative",
    "held: record an event": "CUDA events, graphs and copies need launches with durations",
    "held: wait for an event": "CUDA events, graphs and copies need launches with durations",
    "held: launch a graph": "CUDA events, graphs and copies need launches with durations",
    "held: synchronize": "CUDA events, graphs and copies need launches with durations",
    "held: copy": "CUDA events, graphs and copies need launches with durations",
    "held: set memory": "CUDA events, graphs and copies need launches with durations",
    "held: call a host function": "CUDA events, graphs and copies need launches with durations",
    "held: a host call": "CUDA events, graphs and copies need launches with durations",
    "held: write a value": "CUDA events, graphs and copies need launches with durations",
    "held: wait for a value": "CUDA events, graphs and copies need launches with durations",
    "timed: a host function in a negative stream": "host function: stream: -2 is negative",
    "timed: a host function of a negative duration": "host function: duration: -1 ns is beyond",
    "timed: a host call of a negative duration": "host call: duration: -1 ns is beyond",
    "timed: write a value in a negative stream": "write of a value: stream: -2 is negative",
    "timed: a copy in a negative stream": "copy or memset: stream: -2 is negative",
    "timed: a release": "release: launches with durations end by themselves",
    "timed: no duration": "launch 0: duration: one, or one per block, is needed; got 0 for",
    "timed: a duration too few": (
        "launch 0: duration: one, or one per block, is needed; got 2 for 3 blocks"
    ),
    "timed: a negative duration": "launch 0: duration: -1 ns",
    "timed: no time of issue": "issue times: one per launch is needed, for 1, ascending",
    "timed: times of issue descend": "issue times: one per launch is needed, for 2, ascending",
    "timed: a negative time of issue": "issue times: one per launch is needed",
    "timed: a negative stream": "launch: stream: -2 is negative and not the legacy stream",
    "timed: record in a negative stream": "record: stream: -2 is negative",
    "timed: wait in a negative stream": "wait: stream: -2 is negative",
    "timed: synchronize in a negative stream": "synchronize: stream: -2 is negative",
    "timed: a gap too few": "host: a gap for each of 2 events is needed",
    "timed: a negative gap": "host: a gap for each of 1 events is needed, within the range of time",
    "timed: a negative interval": "launch interval: -1 ns is beyond the range of time",
    "timed: no graph": "graph: there is none",
    "timed: an edge to a node that is not there": "graph: edges: from 0 to 2 of a graph of 2 nodes",
    "timed: nodes that wait for each other": (
        "graph: edges: 2 of 2 nodes wait for each other, node 0 is the first"
    ),
    "timed: more blocks than a timeline holds": "blocks: 1073741824 with durations are more than",
    "timed: a copy of no bytes": "copy or memset: bytes: 0 are outside 1..1073741824",
    "timed: a memset of too many bytes": "copy or memset: bytes: 1073741825 are outside",
    "timed: a copy of a negative duration": "copy or memset: duration: -1 ns is beyond",
    "timed: more waits than are kept": "waits: 9 of 9 launches have more than 20, the most",
    "many: a fault that has no words": "out of memory",
    "table: an unknown sequence": "sequence 0: the table has 0",
    "table: bounds beyond it": "bounds: 0 to 1 are not ascending within the table's 0..0",
    "table: an unknown kind": "cells: 9 is no kind of event; a launch is 0, a release 1",
    "table: an unknown partition": "cells: there is no partition 2, of 0",
    "matching states: an array too many": "smid: an array for each of 0 sequences is needed; got 1",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the program printed: for each way to go wrong, what it was told."""
    folder = built(tmp_path_factory, FOLDER)
    done = subprocess.run([folder / "misuse"], capture_output=True, text=True)
    assert done.returncode == 0, f"it ended with {done.returncode} after\n{done.stdout}"
    return dict(line.split(" -> ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("case", MESSAGES)
def test_misuse_is_refused_in_words(said: dict[str, str], case: str) -> None:
    assert re.match(re.escape(MESSAGES[case]), said[case])


@pytest.mark.parametrize("case", GOT)
def test_misuse_of_a_list_names_what_is_wrong_in_it(said: dict[str, str], case: str) -> None:
    assert GOT[case] in said[case]


def test_every_case_of_the_program_is_looked_at(said: dict[str, str]) -> None:
    assert set(said) == {
        *MESSAGES, "a refusal changes nothing", "makespan of a graph", "makespan of a copy",
    }  # fmt: skip


def test_refusal_changes_nothing(said: dict[str, str]) -> None:
    assert said["a refusal changes nothing"] == "1"


def test_makespan_is_that_of_launches(said: dict[str, str]) -> None:
    interval_ns = device("h200").node_interval_ns
    assert int(said["makespan of a graph"]) == interval_ns + 1000
    assert said["makespan of a copy"] == "0"
