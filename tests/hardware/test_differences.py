"""What two devices differ in."""

from __future__ import annotations

import dataclasses

import pytest
from typer.testing import CliRunner

import tbsched as tb
from hardware.files import Write, variant
from tbsched.cli.app import app

H200 = tb.device("h200")
first, second, *rest = H200.gpcs


def test_device_is_the_same_as_itself_and_as_a_copy_by_another_name() -> None:
    for other in (H200, dataclasses.replace(H200, name="copy")):
        diff = tb.compare_devices("h200", other)
        assert (diff.same, diff.values, diff.sources) == (True, (), ())
    assert "have the same" in str(tb.compare_devices("h200", H200))


def test_value_and_source_of_both_sides(write: Write) -> None:
    mine = write(variant("limits.warps_per_sm", "48"))
    diff = tb.compare_devices("rtx3090-no-warp-skip", mine)
    (value,) = diff.values
    assert (value.path, value.a, value.b) == ("mechanisms.warp_skip", False, True)
    assert value.a_origin == tb.device("rtx3090-no-warp-skip").provenance[value.path]
    assert value.b_origin is not None
    assert (value.b_origin.kind, value.b_origin.source) == ("inherited", "rtx3090")
    sources = {row.path: row for row in diff.sources}
    warps = sources["limits.warps_per_sm"]
    assert warps.a == warps.b == 48
    assert warps.a_origin is not None
    assert warps.b_origin is not None
    assert (warps.a_origin.kind, warps.b_origin.kind) == ("paper", "measured")


def test_device_made_in_python_says_nothing_of_its_sources() -> None:
    diff = tb.compare_devices(dataclasses.replace(H200, sms=132, provenance={}), H200)
    assert diff.same
    assert len(diff.sources) == diff.compared
    assert diff.sources[0].a_origin is None


def test_text_says_which_tpcs_are_elsewhere() -> None:
    moved = dataclasses.replace(H200, gpcs=((*first, second[0]), second[1:], *rest))
    text = str(tb.compare_devices(H200, moved))
    assert f"topology.gpcs: TPC {second[0]} is in GPC 1 in a, in GPC 0 in b" in text
    gone = dataclasses.replace(H200, gpcs=(first[1:], second, *rest))
    text = str(tb.compare_devices(H200, gone))
    assert f"TPC {first[0]} is in GPC 0 in a, in no GPC in b" in text
    assert "unknown in b" in str(tb.compare_devices(H200, dataclasses.replace(H200, gpcs=())))


def test_text_says_where_lists_differ() -> None:
    order = (H200.sm_preference[1], H200.sm_preference[0], *H200.sm_preference[2:])
    text = str(tb.compare_devices(H200, dataclasses.replace(H200, sm_preference=order)))
    assert "2 of 132 places differ; the first one holds 124 in a, 126 in b" in text
    more = (0, *H200.shared_memory_configurations)
    text = str(
        tb.compare_devices(H200, dataclasses.replace(H200, shared_memory_configurations=more))
    )
    assert "configurations: only in b: 0" in text


@pytest.mark.parametrize(
    ("arguments", "status"), [(("h100", "h200"), 1), (("h100", "h100"), 0), (("a100", "h200"), 1)]
)
def test_command_exits_with_1_if_a_value_differs(arguments: tuple[str, str], status: int) -> None:
    found = CliRunner().invoke(app, ["devices", "--diff", *arguments], standalone_mode=False)
    assert found.return_value == status


def test_command_lists_equal_values_from_elsewhere_on_demand() -> None:
    def printed(*more: str) -> str:
        return CliRunner().invoke(app, ["devices", "--diff", "h100", "h200", *more]).stdout

    assert "limits.warps_per_sm" not in printed()
    assert "limits.warps_per_sm" in printed("--sources")


@pytest.mark.parametrize(
    "arguments", [["a100", "--diff", "h100", "h200"], ["--sources"], ["--cpp", "--diff", "a", "b"]]
)
def test_options_that_contradict_each_other_are_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["devices", *arguments], standalone_mode=False)
    assert isinstance(result.exception, ValueError)
