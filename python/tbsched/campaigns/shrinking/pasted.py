"""Counterexamples as code: test functions that run wherever they are pasted."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import Any, assert_never

from tbsched.campaigns.oracles import Device, ModelGpu, OracleLike, device_and_policy
from tbsched.campaigns.results import case_id
from tbsched.comparison.compare import Diff
from tbsched.hardware.catalogue import ATTACHED, devices
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.duration import Drawn
from tbsched.program.events.kinds import Control
from tbsched.program.events.transfers import Transfer
from tbsched.program.partition import Partition, SmSplit
from tbsched.program.sequence import (
    Conditional,
    Event,
    Graph,
    GraphLaunch,
    Launch,
    Release,
    Sequence,
)


@dataclass(frozen=True, slots=True)
class Code:
    """An expression about ``seq``, and what of tbsched, or of dataclasses, it names."""

    text: str
    names: frozenset[str]


def code_of(
    diff: Diff, level: str, predicting: Code, observing: Code | None, predictor: str
) -> str:
    """Returns a pytest function that fails as long as the predictor is wrong.

    Args:
        diff: of prediction and observation.
        level: how closely they are compared.
        predicting: predicts ``seq``.
        observing: observes it; None writes the observation out.
        predictor: in the name of the function.
    """
    sequence = diff.a.sequence
    names = {"Sequence", *predicting.names, *(n for event in sequence for n in _names_in(event))}
    if observing is not None:
        names |= {"compare", *observing.names}
        check = [f"assert compare({predicting.text}, {observing.text}).{level}"]
    else:
        rows = [placement.smid.tolist() for placement in diff.b]
        blocks = "p.smid.tolist()"
        if level == "occupancy":
            rows, blocks = [sorted(row) for row in rows], f"sorted({blocks})"
        check = [f"seen = {rows}", f"assert [{blocks} for p in {predicting.text}] == seen"]
    return _function(sequence, predictor, names, [], check)


def order_code_of(sequence: Sequence, device: Device, policy: str | None, predictor: str) -> str:
    """Returns a pytest function that fails as long as a GPU's order of launches is not explained.

    Args:
        sequence: a timed one.
        device, policy: the predictor.
        predictor: in the name of the function.
    """
    arguments, device_names = _device_code(device)
    if policy is not None:
        arguments += f", policy={json.dumps(policy)}"
    names = {"Sequence", "observe", *device_names, *(n for e in sequence for n in _names_in(e))}
    imports = ["from tbsched.campaigns import order_differs\n"]
    check = [f"assert not order_differs(observe(seq), {arguments})"]
    return _function(sequence, predictor, names, imports, check)


def _function(
    sequence: Sequence, predictor: str, names: set[str], more: list[str], check: list[str]
) -> str:
    """Returns the code of a test function that shows the counterexample."""
    imports = [f"from tbsched import {', '.join(sorted(names - {'replace'}))}\n", *more]
    if "replace" in names:
        imports.insert(0, "from dataclasses import replace\n")
    name = "".join(c if c.isalnum() else "_" for c in predictor)
    return "\n    ".join(
        [
            f"def test_{name}_{case_id(sequence)[3:]}():",
            *imports,
            "seq = " + sequence.to_source().replace("\n", "\n    "),
            *check,
        ]
    )


def predicting(device: Device, policy: str | None, state: InitialState | None) -> Code:
    """Returns code that asks a model for a prediction, from a latent state; None: from the usual
    one."""
    arguments, names = _device_code(device)
    if policy is not None:
        arguments += f", policy={json.dumps(policy)}"
    if state is not None:
        arguments += f", initial_state={state!r}"
        names |= {"InitialState"}
    return Code(f"predict(seq, {arguments})", names | {"predict"})


def observing(oracle: OracleLike) -> Code | None:
    """Returns code that asks an oracle for an observation; None: the oracle cannot be named, and
    the test must hold what it showed."""
    if oracle == "gpu" or type(oracle).__name__ == "Gpu":
        return Code("observe(seq)", frozenset({"observe"}))
    if isinstance(oracle, ModelGpu):
        return predicting(oracle.spec, oracle.policy, oracle.initial_state)
    if isinstance(oracle, DeviceSpec | str | os.PathLike | tuple):
        return predicting(*device_and_policy(oracle), None)
    return None


def _device_code(device: Device) -> tuple[str, frozenset[str]]:
    """Returns code that makes the device, and the names that it needs imported."""
    if device == ATTACHED:
        device = find_device(device)  # elsewhere that name is another GPU's
    if not isinstance(device, DeviceSpec):
        return json.dumps(os.fspath(device)), frozenset()
    try:
        if device.name != ATTACHED and find_device(device.name) == device:
            return json.dumps(device.name), frozenset()
    except ValueError:
        pass  # a name of the user's
    changes = min(
        ((name, _changes(device, find_device(name))) for name in devices()),
        key=lambda match: len(match[1]),
    )
    base = f"device({json.dumps(changes[0])})"
    parts = [f"{name}={value!r}" for name, value in changes[1].items() if name != "mechanisms"]
    if "mechanisms" in changes[1]:
        switches = _changes(device.mechanisms, find_device(changes[0]).mechanisms)
        switched = ", ".join(f"{name}={value!r}" for name, value in switches.items())
        parts.append(f"mechanisms=replace({base}.mechanisms, {switched})")
    return f"replace({base}, {', '.join(parts)})", frozenset({"replace", "device"})


def _changes(value: Any, base: Any) -> dict[str, object]:
    """Returns the fields in which a value differs from another one."""
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.compare and getattr(value, field.name) != getattr(base, field.name)
    }


def _names_in(event: Event) -> tuple[str, ...]:
    """Returns the names that the event's ``repr`` needs imported.

    Raises:
        AssertionError: an event of an unknown kind.
    """
    if isinstance(event, Launch):
        return _names_in_launch(event)
    if isinstance(event, GraphLaunch):
        launches = (name for node in event.launches for name in _names_in_launch(node))
        return (*_names_in_graph(event.graph), *launches)
    if isinstance(event, Release | Transfer | Control):
        return (type(event).__name__,)
    assert_never(event)


def _names_in_graph(graph: Graph) -> tuple[str, ...]:
    """Returns the names that a graph's ``repr`` needs imported."""
    names = ["Graph"]
    for part in graph.parts:
        names.append(type(part).__name__)
        if isinstance(part, Graph):
            names += _names_in_graph(part)
        elif isinstance(part, Conditional):
            names += [name for run in dict.fromkeys(part.runs) for name in _names_in_graph(run)]
    return tuple(names)


def _names_in_launch(launch: Launch) -> tuple[str, ...]:
    values = (launch.duration, launch.partition, launch.partition and launch.partition.split)
    classes = (Drawn, Partition, SmSplit)
    return ("Launch", *(type(value).__name__ for value in values if isinstance(value, classes)))
