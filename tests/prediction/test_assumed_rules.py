"""A result names the assumed rules that it rests on, and none that it does not rest on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from tbsched import views
from tbsched.hardware.assumed import NEEDS, needs_of_sequence, rules_of
from tbsched.hardware.described import device_of_facts
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.field import Field
from tbsched.hardware.spec import Provenance
from tbsched.program.gpu_facts import GpuFacts
from tbsched.strategies import programs, sequences

H200 = tb.device("h200")
HELD = tb.Sequence([tb.Launch(8, 64, 32), tb.Launch(8, 64, 32)])
TIMED = tb.Sequence([tb.Launch(8, 64, 32, duration=1e-4), tb.Launch(8, 64, 32, duration=1e-4)])
OTHER_WORDS = {
    "contiguous": "pooled", "pooled": "contiguous", "circular": "contiguous",
    "leftover": "fifo", "hopper": "first_fit",
}  # fmt: skip


def test_every_need_of_the_schema_is_one_that_is_looked_for() -> None:
    assert {field.when for field in FIELDS if field.when} == NEEDS


def test_every_field_is_of_a_rule_unless_no_prediction_rests_on_it() -> None:
    """A name, what splits a GPU before anything runs, and what the host's memory decides."""
    assert {field.name for field in FIELDS if not field.rule} == {
        "name", "title", "compute_capability", "coscheduled_sms", "host_write_ns",
    }  # fmt: skip


def test_fields_of_one_rule_are_about_the_same() -> None:
    needed: dict[str, set[str]] = {}
    for field in FIELDS:
        needed.setdefault(field.rule, set()).add(field.when)
    del needed[""]
    assert {rule: needs for rule, needs in needed.items() if len(needs) != 1} == {}


def with_other(spec: tb.DeviceSpec, field: Field) -> tb.DeviceSpec | None:
    """The device with another value of a field; None: there is none that is simple to find."""
    value = field.of(spec)
    others: list[Any] = [value + 1, value - 1, 2 * value] if type(value) is int else []
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, str):
        others = [OTHER_WORDS[value]]
    elif isinstance(value, tuple):
        others = [value[1:], value[::-1]]
    for other in others:
        try:
            if field.is_mechanism:
                changed = dataclasses.replace(spec.mechanisms, **{field.name: other})
                return dataclasses.replace(spec, mechanisms=changed)
            return dataclasses.replace(spec, **{field.name: other})
        except (ValueError, TypeError):
            continue
    return None


def same(a: tb.Trace, b: tb.Trace) -> bool:
    pairs = zip(a, b, strict=True)
    return all(
        np.array_equal(one.smid, other.smid)
        and np.array_equal(one.final_smid, other.final_smid)
        and one.limiter == other.limiter
        and (one.start_ns is None or np.array_equal(one.start_ns, other.start_ns))
        and (one.end_ns is None or np.array_equal(one.end_ns, other.end_ns))
        for one, other in pairs
    )


RULES = [field for field in FIELDS if field.rule and field.when]


@settings(max_examples=examples(200), deadline=None)
@given(st.one_of(sequences("h200"), programs("h200")), st.data())
def test_a_rule_that_a_prediction_does_not_rest_on_changes_nothing(
    seq: tb.Sequence, data: st.DataObject
) -> None:
    needs = needs_of_sequence(seq)
    unneeded = [field for field in RULES if field.when not in needs]
    spec = H200
    for field in data.draw(st.lists(st.sampled_from(unneeded), min_size=1, unique=True)):
        spec = with_other(spec, field) or spec
    try:
        predicted = tb.predict(seq, spec)
    except ValueError:  # a smaller limit, such as of what a block may have
        return
    assert same(tb.predict(seq, H200), predicted)


@pytest.mark.parametrize(
    ("device", "sequence", "rules"),
    [
        ("h200", HELD, ()),
        ("h200", TIMED, ()),
        ("h100", HELD, ()),
        ("h100", TIMED, ()),
        ("a100", HELD, ("layout of shared memory", "order of launches")),
        (
            "a100", TIMED,
            ("layout of shared memory", "order of launches", "hardware queues", "latencies"),
        ),
        ("rtx3090", HELD, ("layout of shared memory",)),
        ("h200-no-warp-skip", HELD, ("turns of processing blocks",)),
    ],
)  # fmt: skip
def test_prediction_names_what_is_assumed_for_its_gpu(
    device: str, sequence: tb.Sequence, rules: tuple[str, ...]
) -> None:
    assert tb.predict(sequence, device).assumed_rules == rules


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        (tb.Launch(8, 64, 32, local_memory=2048), "local memory"),
    ],
)
def test_h200_names_only_what_nobody_measured(launch: tb.Launch, rule: str) -> None:
    assert tb.predict(tb.Sequence([launch]), "h200").assumed_rules == (rule,)
    assert tb.device("h200").assumed_rules == ("local memory",)
    assert {*tb.device("h100").assumed_rules} == {"local memory", "records with timing"}
    timed = tb.Launch(8, 64, 32, stream=0, duration=1e-5), tb.RecordEvent(0, stream=0, timing=True)
    assert tb.predict(tb.Sequence(timed), "h200").assumed_rules == ()
    assert tb.predict(tb.Sequence(timed), "h100").assumed_rules == ("records with timing",)


def test_prediction_over_several_gpus_says_what_is_not_measured() -> None:
    program = tb.Sequence([tb.Launch(8, 64, 32, duration=1e-4), tb.Copy(4096, "p2p", peer=1)])
    found = tb.predict(program, ["h200", "h200"])
    assert found.assumed_rules == ()
    other = tb.predict(program, ["a100", "a100"])
    assert {"copies between GPUs", "events between GPUs"} <= {*(other.assumed_rules or ())}


def test_a_policy_that_the_caller_chose_is_not_assumed() -> None:
    own = tb.predict(HELD, "v100")
    assert "choice of SMs" in (own.assumed_rules or ())
    chosen = tb.predict(HELD, "v100", policy="first_fit")
    assert "choice of SMs" not in (chosen.assumed_rules or ())


def test_a_device_that_inherits_without_a_check_assumes_its_rules(tmp_path: Path) -> None:
    place = tmp_path / "mine.toml"
    place.write_text('extends = "h200"\n')
    assert "order of SMs" in (tb.predict(HELD, place).assumed_rules or ())
    place = tmp_path / "checked.toml"
    place.write_text('extends = "h200"\nchecked = "mine.jsonl"\n')
    assert tb.predict(HELD, place).assumed_rules == ()
    text = str(tb.predict(HELD, tmp_path / "mine.toml"))
    assert "Assumed on mine: " in text
    assert "tbsched devices mine" not in text


def test_a_device_that_a_profile_describes_assumes_the_rules_of_the_nearest() -> None:
    spec = device_of_facts(GpuFacts(name="NVIDIA RTX 5090", sms=170, major=12, minor=0))
    assert spec is not None
    assert {"map of GPCs", "choice of SMs", "placement of clusters"} <= {*spec.assumed_rules}
    assert "limits of an SM" not in spec.assumed_rules  # NVIDIA documents them
    text = str(tb.predict(HELD, spec))
    assert "\nAssumed on NVIDIA RTX 5090: TPCs, map of GPCs, order of SMs, " in text


def test_equal_devices_whose_values_come_from_elsewhere_do_not_share_their_rules() -> None:
    unknown = dataclasses.replace(
        H200, provenance={key: Provenance("assumed", "") for key in H200.provenance}
    )
    assert unknown == H200
    assert tb.predict(HELD, H200).assumed_rules == ()
    assert "choice of SMs" in (tb.predict(HELD, unknown).assumed_rules or ())
    assert tb.predict(HELD, H200).assumed_rules == ()


LINE = "Assumed on a100: layout of shared memory, order of launches"


def results() -> dict[str, tuple[Any, str]]:
    pair = list(HELD.launches)
    queues = ", hardware queues"
    return {
        "held": (tb.predict(HELD, "a100"), ""),
        "timed": (tb.predict(TIMED, "a100"), f"{queues}, latencies"),
        "capacity": (tb.capacity(pair[0], "a100", beside=pair[1:]), ""),
        "capacities": (tb.capacities(pair[0], "a100", beside=pair[1:]), ""),
        "coresident": (tb.coresident(pair, "a100"), queues),
        "processes": (
            tb.predict_processes([TIMED], "a100", time_slice=1e-3),
            f"{queues}, latencies and 1 more",
        ),
    }


@pytest.mark.parametrize("name", results())
def test_every_view_says_it_in_one_line(name: str) -> None:
    found, more = results()[name]
    line = f"{LINE}{more} (tbsched devices a100)."
    assert str(found).split("\n").count(line) == 1
    assert line in views.html(found)
    assert json.loads(json.dumps(views.data(found)))["assumed_rules"] == list(found.assumed_rules)


def test_explanation_of_a_profile_names_them(tmp_path: Path) -> None:
    played = tb.predict(TIMED, "a100", host=0.0)
    tb.save_traces(tmp_path / "played.jsonl", [played])
    program = tb.load_program(tmp_path / "played.jsonl")
    found = tb.explain(program, "a100")
    assert found.assumed_rules[-1] == "times of calls"
    line = (
        "Assumed on a100: layout of shared memory, order of launches, hardware queues, latencies "
        "and 1 more (tbsched devices a100)."
    )
    assert str(found).split("\n").count(line) == 1
    assert line in views.html(found)
    assert views.data(found)["assumed_rules"] == list(found.assumed_rules)
    assert tb.explain(program, "a100", predicted=False).assumed_rules == ()


def test_bounds_of_a_makespan_name_them() -> None:
    found = tb.makespan_bounds(TIMED, "a100")
    assert found.assumed_rules == tb.predict(TIMED, "a100").assumed_rules
    assert "latencies" in str(found)
    assert tb.makespan_bounds(TIMED, "h200").assumed_rules == ()


def test_trace_file_keeps_them_beside_its_device(tmp_path: Path) -> None:
    predicted = tb.predict(HELD, "a100")
    tb.save_traces(tmp_path / "a.jsonl", [predicted])
    (read,) = tb.load_traces(tmp_path / "a.jsonl")
    assert read.assumed_rules == predicted.assumed_rules
    assert read.device.details == predicted.device.details
    assert "assumed" not in predicted.device.details
    header, record = (tmp_path / "a.jsonl").read_text().splitlines()
    old = json.loads(header)
    assert old.pop("assumed") == list(predicted.device.assumed or ())
    (tmp_path / "b.jsonl").write_text(f"{json.dumps(old)}\n{record}\n")
    (read,) = tb.load_traces(tmp_path / "b.jsonl")
    assert read.assumed_rules is None
    old["assumed"] = "all"
    (tmp_path / "c.jsonl").write_text(f"{json.dumps(old)}\n{record}\n")
    with pytest.raises(ValueError, match="assumed: a list of strings is needed, got 'all'"):
        tb.load_traces(tmp_path / "c.jsonl")


def test_fields_of_a_newer_version_are_skipped() -> None:
    assert rules_of(["topology.moons", "topology.sm_preference"]) == ("order of SMs",)


def test_clusters_are_counted_on_the_map_of_one_board() -> None:
    said = "This is the map of GPCs of h200: boards of one kind differ in it"
    cluster = tb.Launch(16, 384, 168, cluster=2)
    other = tb.Launch(1, 64, 32)
    for found in (
        tb.capacity(cluster, "h200"),
        tb.capacity(other, "h200", beside=[cluster]),
        tb.capacities(other, "h200", clusters=[1, 2]),
        tb.coresident([cluster, other], "h200"),
    ):
        assert said in str(found)
        assert said in views.html(found)
    for found in (tb.capacity(other, "h200"), tb.coresident([other], "h200")):
        assert said not in str(found)
