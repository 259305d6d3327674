"""Every parameter of every public function is given nonsense: refused in words, or of use.

Whatever is refused is refused by ValueError or TypeError, and the message names the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from helpers import gpu, launch
from tbsched.papers import published_rules

NONSENSE: dict[str, Any] = {
    "None": None,
    "a word": "x",
    "an empty list": [],
    "an empty dict": {},
    "a list of None": [None],
    "1.5": 1.5,
    "-1": -1,
    "nan": float("nan"),
    "bytes": b"x",
    "an object": object(),
    "an array": np.zeros((2, 2)),
    "a huge string": "x" * 100_000,
    "a huge number": 10**5000,
}
ONE = gpu()
HELD = tb.Sequence([launch(4), tb.Release(0)])
TIMED = tb.Sequence([launch(4, duration=1e-3)])
SLOTS = tb.predict(HELD, ONE, warp_slots=True)
TRACE = tb.predict(TIMED, ONE)
KERNEL = tb.sm.preset("SCP", blocks=1, loads=2)
DIFF = tb.compare(SLOTS, SLOTS)
MODEL = {"device": ONE, "policy": None}

# A call that is right, for each function.
RIGHT: dict[Callable[..., Any], dict[str, Any]] = {
    tb.Launch: {
        "blocks": 1, "threads": 1, "registers": 1, "shared_memory": 0, "local_memory": 0,
        "carveout": 0, "cluster": 1, "stream": 0, "priority": 0, "duration": 1.0, "name": "",
        "partition": tb.Partition((0,)), "cooperative": False, "non_blocking": False,
        "programmatic": False, "trigger": 0.5, "memory_wait": 0.5, "completion_event": 0,
        "first_use": False, "delay": 0.5, "host": 0,
    },
    tb.Partition: {"sms": (0,), "split": tb.SmSplit(1), "group": 0},
    tb.SmSplit: {"min_sms": 8, "groups": 1, "ignore_coscheduling": False, "max_cluster": False},
    tb.Graph: {"nodes": TIMED.launches, "edges": ()},
    tb.Graph(TIMED.launches).launch: {"stream": 0, "non_blocking": False, "host": 0},
    tb.GraphLaunch: {
        "graph": tb.Graph(TIMED.launches), "stream": 0, "non_blocking": False, "host": 0,
    },
    tb.Copy: {"bytes": 1, "kind": "h2d", "duration": 1.0},
    tb.Memset: {"bytes": 1, "duration": 1.0},
    tb.Release: {"launch": 0},
    tb.RecordEvent: {"event": 0, "stream": 0, "host": 0, "timing": True},
    tb.WaitEvent: {"event": 0, "stream": 0, "host": 0},
    tb.Synchronize: {"stream": 0, "event": None, "host": 0},
    tb.Drawn: {"distribution": "uniform", "mean": 1.0, "spread": 0.5, "seed": 0},
    tb.Drawn("uniform", 1.0).draw: {"blocks": 3},
    tb.Sequence: {"events": []},
    tb.Sequence.from_json: {"text": "[]"},
    tb.InitialState: {"first_gpc": 0, "first_singleton": 0},
    tb.Kernel: {
        "threads": 1, "registers": 1, "shared_memory": 0, "shared_memory_per_thread": 0,
        "local_memory": 0, "carveout": None,
    },
    tb.Kernel(100, 16).launch: {"threads": 32},
    tb.device: {"name": "h200"},
    ONE.check: {"sequence": HELD},
    ONE.initial_states: {"policy": None},
    tb.predict: {
        "seq": TIMED, **MODEL, "initial_state": None, "launch_interval": 0.0, "issue_times": None,
        "host": None, "warp_slots": False,
    },
    tb.predict_many: {
        "sequences": [HELD], **MODEL, "initial_state": None, "launch_interval": 0.0,
        "warp_slots": False, "threads": 1,
    },
    tb.predict_processes: {
        "programs": [TIMED], **MODEL, "device": "h200", "initial_state": None,
        "launch_interval": 0.0, "issue_times": None, "mps": False,
    },
    tb.predict_as_recorded: {"observation": TRACE, **MODEL, "initial_state": None},
    tb.outcomes: {"seq": HELD, **MODEL, "initial_state": None, "races": 1},
    tb.compare: {"a": TRACE, "b": TRACE},
    tb.compare_times: {"prediction": TRACE, "observation": TRACE, "tolerance": 0.05},
    tb.best_order: {
        "kernels": TIMED.launches, **MODEL, "launch_interval": 0.0, "max_predictions": 9, "seed": 0,
    },
    tb.what_if: {
        "seq": TIMED, **MODEL, "carveouts": (), "block_sizes": (), "orders": False,
        "launch_interval": 0.0,
    },
    tb.launch_configs: {"device": ONE, "kernel": tb.Kernel(100, 16), "trust_policy": False},
    tb.capacity: {
        "launch": launch(), **MODEL, "beside": (), "partition": None, "state": None,
    },
    tb.capacities: {
        "launch": launch(), **MODEL, "threads": None, "carveouts": None, "clusters": None,
        "beside": (), "partition": None, "state": None,
    },
    tb.budget: {"launch": launch(), **MODEL, "beside": (), "plays": 9},
    tb.coresident: {
        "launches": [launch()], **MODEL, "groups": None, "after": (), "fixes": False,
        "connections": None, "plays": 9, "seconds": None,
    },
    tb.sm.simulate: {
        "workload": KERNEL, "scheduler": "owl", "config": "owl-table1", "cores": None,
        "commands": False, "warps": False, "checked": False,
    },
    KERNEL.lines_of_blocks: {"line_bytes": 128},
    tb.assert_coresident: {
        "launches": [launch()], **MODEL, "groups": None, "after": (), "connections": None,
        "plays": 9,
    },
    tb.forced_even: {"device": ONE, "launch": launch()},
    tb.Trace: {"sequence": TIMED, "device": TRACE.device, "placements": TRACE.placements},
    tb.show.gantt: {"trace": TRACE, "by": "sm", "tasks": None, "ax": None},
    tb.show.sm_map: {"what": TRACE, "at": None, "ax": None},
    tb.show.blocks: {"trace": SLOTS, "ax": None},
    tb.show.compared: {"diff": SLOTS, "observation": SLOTS, "ax": None},
    tb.show.ladder: {"scores": [tb.verify([SLOTS], ONE)], "ax": None},
    tb.show.resources: {"prediction": SLOTS, "sm": 0, "at": None, "ax": None},
    tb.verify: {"traces": [SLOTS], **MODEL},
    TRACE.explain: {"launch": 0},
    TRACE.concurrent: {"a": 0, "b": 0},
    TRACE[0].occupancy: {"sms": 1},
    DIFF.agrees: {"level": "exact"},
    DIFF.warp_slots_agree: {"processing_blocks": 4},
    published_rules.joins_on_idle_sms: {"warps_per_sm": 64, "first": 1, "second": 1},
    published_rules.spreads_evenly: {"registers": 1, "registers_per_sm": 65536},
}  # fmt: skip
# What messages call a parameter instead.
ALIASES = {
    "seq": "sequence", "sequences": "sequence", "text": "from_json",
    "carveouts": "carveout", "name": "device", "workload": "preset",
}  # fmt: skip


def faults(function: Callable[..., Any], parameter: str) -> Iterator[str]:
    """What is wrong with how the function takes nonsense in place of the parameter."""
    for words, value in NONSENSE.items():
        try:
            shown = str(function(**{**RIGHT[function], parameter: value}))
        except (ValueError, TypeError) as error:
            shown = str(error)
            if parameter not in shown and ALIASES.get(parameter, parameter) not in shown:
                yield f"{words}: not named: {shown[:200]}"
            if len(shown) > 1000:
                yield f"{words}: a message of {len(shown)} characters"
        except Exception as error:
            yield f"{words}: {error!r:.200}"


@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__qualname__)
def test_nonsense_is_refused_in_words(function: Callable[..., Any]) -> None:
    function(**RIGHT[function])
    found = {name: list(faults(function, name)) for name in RIGHT[function]}
    assert {name: some for name, some in found.items() if some} == {}


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (tb.load_traces, "path"),
        (lambda value: tb.save_traces(value, []), "path"),
        (tb.observe, "Sequence"),
        (lambda value: tb.fuzz(value, progress=False), "oracle"),
        (lambda value: tb.fuzz("h200", value, progress=False), "device"),
        (lambda value: tb.steer(value, "h200"), "gpu"),
        (lambda value: tb.sm.save_workload(value, "none.npz"), "workload"),
        (lambda value: tb.strategies.prefixes([value]), "recorded"),
    ],
)
@pytest.mark.parametrize("value", [[], 10**5000], ids=["a list", "a huge number"])
def test_what_cannot_be_tried_with_all_nonsense_refuses_some(
    function: Callable[[object], object], named: str, value: object
) -> None:
    with pytest.raises(TypeError, match=named):
        function(value)
