"""Shared-memory configurations of an H200, as recorded launch by launch.

configurations.json has two tables: the configuration that a launch sets on an idle SM, and those of
a busy SM that its blocks may enter. The hardware was asked with blocks that need exactly one
configuration; the model is asked with the same.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from helpers import CONFIGURATIONS, TRACES, asks_for, fits, gpu, sets
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch

H200 = gpu(base="h200")  # one SM: each has its own configuration
PLAIN = gpu(base="h200", configuration_headroom=False)
ROWS = {"target": 1815, "admitted": 450}

Row = tuple[Launch, list[int]]


@functools.cache
def recorded(table: str) -> tuple[Row, ...]:
    """Launches, and the configurations in KB recorded for each."""
    data: dict[str, Any] = json.loads((TRACES / "configurations.json").read_text("utf-8"))
    rows: list[Row] = []
    for threads, registers, shared_memory, carveout, found in data[table]:
        launch = Launch(1, threads, registers, shared_memory, carveout=carveout)
        rows.append((launch, found if isinstance(found, list) else [found]))
    return tuple(rows)


def enters_with_room(spec: DeviceSpec, second: Launch) -> list[int]:
    return [size for size in CONFIGURATIONS if fits(spec, asks_for(size), second)]


def differing(
    table: str, predicted: Callable[[DeviceSpec, Launch], list[int]], spec: DeviceSpec = H200
) -> list[Row]:
    return [
        (launch, found) for launch, found in recorded(table) if predicted(spec, launch) != found
    ]


@pytest.mark.parametrize(("table", "rows"), ROWS.items())
def test_tables_have_every_launch_once(table: str, rows: int) -> None:
    launches = [launch for launch, _ in recorded(table)]
    assert len(launches) == len(set(launches)) == rows
    assert {size for _, found in recorded(table) for size in found} == set(CONFIGURATIONS)


def test_launches_set_an_idle_sm_to_the_recorded_configuration() -> None:
    assert differing("target", sets) == []


def test_blocks_enter_every_busy_sm_that_they_were_recorded_to_enter_and_no_other() -> None:
    assert not differing("admitted", enters_with_room)


def test_without_headroom_two_rows_in_five_disagree() -> None:
    assert len(differing("target", sets, PLAIN)) > 0.4 * ROWS["target"]
    assert len(differing("admitted", enters_with_room, PLAIN)) > 0.3 * ROWS["admitted"]
