"""What follows from the rows of the schema is fresh, and all that there is."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers import ROOT
from tbsched.hardware.device_fields import FIELDS, DeviceFields, Mechanisms
from tbsched.hardware.field import TYPES

GENERATE = SimpleNamespace(**runpy.run_path(str(ROOT / "schema" / "generate.py")))


@pytest.mark.parametrize("path", GENERATE.generated(), ids=str)
def test_generated_file_is_fresh(path: Path) -> None:
    fresh = (ROOT / path).read_text("utf-8") == GENERATE.generated()[path]
    assert fresh, f"{path} is out of date: run `python schema/generate.py`"


def test_installed_fields_are_those_of_the_schema() -> None:
    rows = [
        (row.section, row.name, row.type, row.because, row.rule, row.when)
        for row in GENERATE.rows()
    ]
    assert list(map(tuple, FIELDS)) == rows
    assert {row.type for row in GENERATE.rows()} <= set(TYPES) == set(GENERATE.TYPES)


def test_fields_have_different_names() -> None:
    plain = [field.name for field in FIELDS if not field.is_mechanism]
    switches = [field.name for field in FIELDS if field.is_mechanism]
    assert sorted([*plain, "mechanisms"]) == sorted(
        f.name for f in dataclasses.fields(DeviceFields)
    )
    assert sorted(switches) == sorted(field.name for field in dataclasses.fields(Mechanisms))
    assert len(set(plain)) == len(plain)


def test_documented_limits_are_of_fields_within_their_ranges() -> None:
    rows = {row.name: row for row in GENERATE.rows()}
    for capability, limits in GENERATE.documented():
        for name, value in limits.items():
            row = rows[name]
            if row.type == "ints":
                assert value == sorted(set(value)), (capability, name)
            else:
                assert row.range[0] <= value <= row.range[1], (capability, name)
