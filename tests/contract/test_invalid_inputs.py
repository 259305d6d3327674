"""Ten thousand invalid inputs: each is refused by ValueError or TypeError in words, none crashes.

``TBSCHED_INVALID_INPUTS`` sets another number, as for a long run with the sanitizers.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import lzma
import os
import random
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tbsched.campaigns.campaign import fuzz
from tbsched.comparison.compare import compare
from tbsched.hardware.catalogue import device
from tbsched.hardware.device_fields import Mechanisms
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.duration import Drawn
from tbsched.program.partition import Partition, SmSplit
from tbsched.program.sequence import Graph, Launch, RecordEvent, Release, Sequence, WaitEvent
from tbsched.traces.files import load_traces, save_traces
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

WANTED = int(os.environ.get("TBSCHED_INVALID_INPUTS", "10000"))

# A call that must be refused, and a word that the message must hold; None where the input is text
# damaged at random, which may by chance still be valid.
Attempt = tuple[Callable[[], object], str | None]
Entry = Callable[[random.Random, Path], Attempt]

GOOD = Sequence([Launch(66, 512, 32, 1024, carveout=100), Release(0), Launch(1, 1, 1, name="é")])
H200 = device("h200")
TOML = (resources.files("tbsched.hardware") / "devices" / "h200.toml").read_text("utf-8")
WRONG_TYPES: tuple[Any, ...] = (
    None, True, 1.5, float("nan"), "", "1", "h200", b"", b"1", [], [1], (), {}, {"a": 1}, object(),
    1j, int, np.float32(1), np.array([1, 2]), np.array("x"), Launch, ..., {1},
)  # fmt: skip
HUGE = (-(2**70), -(2**63), -(2**31) - 1, -(2**31), 2**31, 2**32, 2**63, 2**64, 2**70, 10**400)
LIMITS = {
    "blocks": (1, 2**31 - 1),
    "threads": (1, 1024),
    "registers": (1, 255),
    "shared_memory": (0, 2**24),
    "local_memory": (0, 2**19),
    "carveout": (0, 100),
    "cluster": (1, 16),
    "stream": (0, 2**31 - 1),
    "priority": (-(2**15), 2**15),
    "completion_event": (0, 2**31 - 1),
}


def number_outside(rng: random.Random, low: int, high: int) -> int:
    near = (low - 1, high + 1, low - rng.randrange(1, 10**6), high + rng.randrange(1, 10**6))
    return rng.choice([*near, *(value for value in HUGE if not low <= value <= high)])


def wrong_type(rng: random.Random, *allowed: type | None) -> Any:
    while True:
        value = rng.choice(WRONG_TYPES)
        if not any(value is None if kind is None else isinstance(value, kind) for kind in allowed):
            return value


def bad_number(rng: random.Random, low: int, high: int, *allowed: type | None) -> Any:
    if rng.random() < 0.4:
        return wrong_type(rng, *allowed)
    # Python does not write integers of so many digits.
    return rng.choice([*[number_outside(rng, low, high)] * 9, 10**5000])


def damaged(rng: random.Random, text: str) -> str:
    """Text with a few characters cut, repeated or replaced, or values exchanged for others."""
    pieces = ["-1", "1e999", "null", "NaN", '"x"', "[]", "{}", "true", "0.5", "9" * 25, "[[[[",
              "\0", "", "=", "\n", "\ud7ff", "-Infinity"]  # fmt: skip
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(text) + 1)
        stop = min(len(text), start + rng.choice([0, 1, 1, 2, 5, 40, len(text)]))
        text = text[:start] + rng.choice(pieces) + text[stop:]
    return text


# -- one function per public entry ----------------------------------------------------------------


def bad_launch(rng: random.Random, _: Path) -> Attempt:
    flags = ("cooperative", "non_blocking", "programmatic")
    times = ("trigger", "memory_wait", "delay")
    field = rng.choice([*LIMITS, "duration", "name", "partition", *flags, *times])
    value: Any
    if field == "name":
        value = wrong_type(rng, str, None)
    elif field == "partition":
        value = rng.choice([wrong_type(rng, None), Partition(())])
    elif field in flags:
        value = True if field in flags[1:] and rng.random() < 0.3 else wrong_type(rng, bool)
    elif field in times:  # 0.5 is of a launch with a duration
        value = rng.choice([wrong_type(rng, float, None), -1, float("nan"), 1e10, 0.5])
    elif field == "duration":
        value = rng.choice(
            [wrong_type(rng, float, None), -1, -0.1, float("nan"), 1e10, 2**70, (1.0, 2.0), (-1.0,)]
        )
    else:
        optional = (None,) if field in ("carveout", "stream", "completion_event") else ()
        value = bad_number(rng, *LIMITS[field], *optional)
    given = {"blocks": 1, "threads": 32, "registers": 16, field: value}
    return lambda: Launch(**given), field


def bad_release(rng: random.Random, _: Path) -> Attempt:
    value = bad_number(rng, 0, 10**6)
    return lambda: Release(value), "Release.launch"


def bad_cuda_event(rng: random.Random, _: Path) -> Attempt:
    kind = rng.choice([RecordEvent, WaitEvent])
    given = {"event": 0, "stream": 0}
    field = rng.choice(list(given))
    none = (None,) if field == "stream" else ()  # None is that of a node of a graph
    given[field] = bad_number(rng, 0, 2**31 - 1, *none)
    return lambda: kind(**given), field


def bad_partition(rng: random.Random, _: Path) -> Attempt:
    given: dict[str, Any] = {"sms": (0, 2), "split": SmSplit(2), "group": 0}
    field = rng.choice(list(given))
    given[field] = {
        "sms": lambda: rng.choice([wrong_type(rng, list, tuple, set, np.ndarray), (2, 0), (1, 1),
                                   (0, bad_number(rng, 0, 65535))]),
        "split": lambda: wrong_type(rng, None),
        "group": lambda: bad_number(rng, 0, 2**31 - 1, None),
    }[field]()  # fmt: skip
    return lambda: Partition(**given), f"Partition.{field}"


def bad_graph(rng: random.Random, _: Path) -> Attempt:
    node = Launch(1, 32, 16, duration=1.0)
    if rng.random() < 0.5:
        changes = {"stream": 0, "duration": None, "programmatic": True, "trigger": 0.5}
        field = rng.choice(list(changes))
        wrong = dataclasses.replace(node, **{field: changes[field]})
        nodes: list[Any] = [node, rng.choice([wrong, wrong_type(rng)])]
        return lambda: Graph(nodes), "Graph.nodes[1]"
    edges = rng.choice([[(0, bad_number(rng, 0, 1))], [(0, 1), (1, 0)], [(0, 1), (0, 1)], [(0,)],
                        [wrong_type(rng, list, tuple, set, np.ndarray)]])  # fmt: skip
    return lambda: Graph([node, node], edges), "Graph.edges"


def bad_drawn(rng: random.Random, _: Path) -> Attempt:
    given: dict[str, Any] = {"distribution": "uniform", "mean": 1.0, "spread": 0.5, "seed": 0}
    field = rng.choice(list(given))
    given[field] = {
        "distribution": lambda: rng.choice([wrong_type(rng, str), "", "Uniform", "gamma"]),
        "mean": lambda: rng.choice([wrong_type(rng, float), -1.0, 0, 1e10, float("inf")]),
        "spread": lambda: rng.choice([wrong_type(rng, float), -1.0, 1.1, 1e10, float("nan")]),
        "seed": lambda: bad_number(rng, 0, 2**63 - 1),
    }[field]()
    return lambda: Drawn(**given), field


def bad_sequence(rng: random.Random, _: Path) -> Attempt:
    if rng.random() < 0.2:
        value = wrong_type(rng, list, tuple, set, np.ndarray)
        return lambda: Sequence(value), "Sequence.events"
    events: list[Any] = list(GOOD)
    events.insert(
        rng.randrange(len(events) + 1),
        rng.choice(
            [
                wrong_type(rng),
                Release(rng.randrange(2, 10**6)),
                Launch(1, 32, 16, duration=rng.random()),
                Launch(1, 32, 16, stream="legacy"),
                RecordEvent(0, 0),
                Graph([Launch(1, 32, 16, duration=rng.random())]).launch(),
            ]
        ),
    )
    return lambda: Sequence(events), "Sequence.events["


def bad_json(rng: random.Random, _: Path) -> Attempt:
    if rng.random() < 0.05:
        value = wrong_type(rng, str, bytes)
        return lambda: Sequence.from_json(value), "Sequence.from_json"
    if rng.random() < 0.5:
        field = rng.choice(["blocks", "threads", "registers", "cluster", "priority"])
        launch: dict[str, Any] = {"blocks": 1, "threads": 32, "registers": 16}
        launch[field] = rng.choice(
            [number_outside(rng, *LIMITS[field]), None, "1", 1.5, [], {}, True]
        )
        text = json.dumps([{"launch": launch}])
        return lambda: Sequence.from_json(text), field
    text = damaged(rng, GOOD.to_json())
    return lambda: Sequence.from_json(text), None


def bad_device(rng: random.Random, folder: Path) -> Attempt:
    kind = rng.random()
    if kind < 0.1:
        value = wrong_type(rng, str)
        return lambda: device(value), "device"
    if kind < 0.3:
        name = rng.choice(
            ["h2000", "h200-", "-", "h200-no-such", "\0", "é", "ablations", "h200.tom"]
        )
        name += rng.choice(["", "x", " ", "-no-warp-skip-"])
        return lambda: device(name), "device"
    if kind < 0.35:
        path = folder / rng.choice(["absent.toml", "absent/mine.toml", "no\0file.toml"])
        return lambda: device(path), None
    path = folder / "mine.toml"
    path.write_text(damaged(rng, TOML), encoding="utf-8")
    return lambda: device(path), None


def bad_spec(rng: random.Random, _: Path) -> Attempt:
    fields = [field.name for field in dataclasses.fields(DeviceSpec) if field.name != "provenance"]
    switches = [field.name for field in dataclasses.fields(Mechanisms)]
    field = rng.choice([*fields, *switches])
    if field in switches:
        value = wrong_type(rng, bool, str) if rng.random() < 0.9 else rng.choice(["", "x"])
        changes: dict[str, Any] = {field: value}
        mechanisms = dataclasses.replace(H200.mechanisms, **changes)
        return lambda: predict(GOOD, dataclasses.replace(H200, mechanisms=mechanisms)), field
    numbers = isinstance(getattr(H200, field), int)
    right = (tuple,) if field == "gpcs" else ()  # an empty one says that the GPCs are unknown
    value = bad_number(rng, 0, 10**9) if numbers else wrong_type(rng, str, *right)
    return lambda: predict(GOOD, dataclasses.replace(H200, **{field: value})), field


def bad_predict(rng: random.Random, _: Path) -> Attempt:
    kind = rng.randrange(7)
    if kind == 6:
        one = Sequence([Launch(1, 32, 16, duration=1e-3)])
        bad = [
            wrong_type(rng, None, list, set, bytes),  # those iterate over numbers
            [wrong_type(rng, float)],
            [],
            [0.0, 1.0],
            [-1.0],
            [2**70],
        ]
        times = rng.choice(bad)
        return lambda: predict(one, "h200", issue_times=times), "issue_times"
    if kind == 5:
        value = rng.choice([wrong_type(rng, float), -1, 1e10, float("nan"), 2**70, 1.0])
        return lambda: predict(GOOD, "h200", launch_interval=value), "launch_interval"
    if kind == 0:
        value = wrong_type(rng, Sequence)
        return lambda: predict(value, "h200"), "sequence"
    if kind == 1:
        value = wrong_type(rng, None, str)
        return lambda: predict(GOOD, "h200", value), "policy"
    if kind == 2:
        name = rng.choice(["", "x", "Ampere", "hopper ", "\0", "é" * rng.randrange(1, 99)])
        return lambda: predict(GOOD, "h200", name), "policy"
    if kind == 3:
        state = rng.choice(
            [
                wrong_type(rng, None),
                InitialState(first_gpc=rng.choice(HUGE)),
                InitialState(first_singleton=4),
            ]
        )
        return lambda: predict(GOOD, "h200", None, state), "initial_state"
    field, launch = rng.choice(
        [
            ("shared_memory", Launch(1, 32, 16, rng.randrange(101377, 2**24))),
            ("registers", Launch(1, 1024, rng.randrange(65, 256))),
            ("cluster", Launch(16, 32, 16, cluster=rng.choice([2, 4, 8, 16]))),
            ("blocks", Launch(rng.randrange(2**28 + 1, 2**31), 32, 16)),
        ]
    )
    sequence = Sequence([*GOOD, launch])
    return lambda: predict(sequence, "rtx3090"), field


def bad_compare(rng: random.Random, _: Path) -> Attempt:
    trace = predict(GOOD, "h200")
    other: Any = rng.choice(
        [wrong_type(rng), predict(GOOD, "rtx3090"), predict(Sequence([*GOOD, *GOOD[:1]]), "h200")]
    )
    pair = [trace, other]
    rng.shuffle(pair)
    return lambda: compare(*pair), "compare"


def bad_trace(rng: random.Random, _: Path) -> Attempt:
    rows = [[0] * 66, [0]]
    row = rng.choice(rows)
    if rng.random() < 0.5:
        row[rng.randrange(len(row))] = rng.choice([-2, 132, -(2**31), 2**31 - 1])
    else:
        row.append(0)
    arrays = tuple(Placement(np.array(values, np.int32)) for values in rows)
    return lambda: Trace(GOOD, DeviceInfo("h200", 132), arrays), "smid["


def trace_file_text() -> str:
    smid = [[*range(66)], [-1]]
    more = {"final_smid": [None, [3]], "limiter": [None, "slots"], "warp_slots": None, "x": 1}
    record = {"id": "a", "events": json.loads(GOOD.to_json()), "smid": smid, **more}
    header = {"tbsched_trace": 1, "device": {"name": "G", "sms": 132}}
    return f"{json.dumps(header)}\n{json.dumps(record)}\n"


def bad_file(rng: random.Random, folder: Path) -> Attempt:
    ending = rng.choice([".jsonl", ".jsonl.xz", ".jsonl.gz", ".txt"])
    path = folder / f"t{ending}"
    content = damaged(rng, trace_file_text()).encode("utf-8", "surrogatepass")
    if ending == ".jsonl.xz":
        content = lzma.compress(content)
    elif ending == ".jsonl.gz":
        content = gzip.compress(content, 1)
    if rng.random() < 0.3:
        spoilt = bytearray(content)
        for _ in range(rng.randrange(1, 5)):
            if spoilt:
                spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        content = bytes(spoilt[: rng.choice([len(spoilt), rng.randrange(len(spoilt) + 1)])])
    path.write_bytes(content)
    return lambda: load_traces(path), None


def bad_path(rng: random.Random, folder: Path) -> Attempt:
    value = wrong_type(rng, str, bytes)
    if rng.random() < 0.5:
        return lambda: load_traces(value), "path"
    return lambda: save_traces(value, []), "path"


def bad_save(rng: random.Random, folder: Path) -> Attempt:
    value = wrong_type(rng)
    path = folder / "saved.jsonl"
    return lambda: save_traces(path, [predict(GOOD, "h200"), value]), "save_traces"


def bad_fuzz(rng: random.Random, _: Path) -> Attempt:
    field, value = rng.choice(
        [
            ("oracle", wrong_type(rng, str)),
            ("oracle", "h2000"),
            ("predictor", wrong_type(rng, str)),
            ("predictor", "h2000"),
            ("policy", wrong_type(rng, str, None)),
            ("policy", "x"),
            ("max_examples", rng.choice([wrong_type(rng), 0, -1, -(2**70)])),
            ("max_counterexamples", rng.choice([wrong_type(rng, None), -1, -(2**70)])),
            ("seed", rng.choice([wrong_type(rng, None), -1])),
            ("options", wrong_type(rng, None)),
            ("max_seconds", rng.choice([wrong_type(rng, None, float), -1, float("nan")])),
            ("shrink_seconds", rng.choice([wrong_type(rng, float), -1, float("nan")])),
            ("initial_state", wrong_type(rng, None)),
            ("limits", wrong_type(rng, None, str)),
            ("level", rng.choice(["", "x", "Exact"])),
            ("draw", rng.choice(["", "Native", wrong_type(rng, str)])),
        ]
    )
    arguments = {"oracle": "rtx3090", "predictor": "rtx3090", "max_examples": 1, field: value}
    words = {"oracle": None, "predictor": "device", "limits": "device"}
    return lambda: fuzz(**arguments, progress=False), words.get(field, field)


SHARES: dict[Entry, int] = {
    bad_launch: 13,
    bad_partition: 1,
    bad_graph: 1,
    bad_release: 3,
    bad_cuda_event: 2,
    bad_drawn: 3,
    bad_sequence: 8,
    bad_json: 18,
    bad_device: 8,
    bad_spec: 10,
    bad_predict: 10,
    bad_compare: 3,
    bad_trace: 3,
    bad_file: 12,
    bad_path: 2,
    bad_save: 2,
    bad_fuzz: 1,
}


def refusals(entry: Entry, number: int, folder: Path) -> Iterator[tuple[Exception, str | None]]:
    """So many refusals, and the word that each must hold."""
    rng = random.Random(f"{entry.__name__} 1")
    for _ in range(3 * number):
        attempt, word = entry(rng, folder)
        try:
            result = attempt()
        except (ValueError, TypeError) as error:
            yield error, word
            number -= 1
            if number == 0:
                return
        else:
            assert word is None, f"{word}: accepted, and gave {result!r:.200}"
    pytest.fail(f"{number} more refusals are wanted: too much damage is harmless")


@pytest.mark.parametrize(
    ("entry", "share"), SHARES.items(), ids=[entry.__name__ for entry in SHARES]
)
def test_invalid_input_is_refused_in_words(entry: Entry, share: int, tmp_path: Path) -> None:
    for error, word in refusals(entry, WANTED * share // 100, tmp_path):
        message = str(error)
        assert message.strip(), repr(error)
        assert word is None or word in message


def test_shares_are_of_a_hundred() -> None:
    assert sum(SHARES.values()) == 100


@pytest.mark.parametrize("value", [0, 1025, -7, 2**70])
def test_refusal_names_field_value_and_limits(value: int) -> None:
    with pytest.raises(ValueError, match=rf"^Launch\.threads: {value} is outside 1\.\.1024$"):
        Launch(1, value, 16)


def test_absent_file_is_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_traces(tmp_path / "absent.jsonl")
    with pytest.raises(FileNotFoundError):
        save_traces(tmp_path / "absent" / "t.jsonl", [])
