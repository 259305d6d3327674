"""A device file says each value once, and where it comes from; a wrong one is named."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from hardware.files import RTX3090, SHIPPED, Write, refusal, row, variant
from tbsched.hardware.catalogue import device
from tbsched.hardware.device_fields import FIELDS, Mechanisms
from tbsched.hardware.device_file import INHERITED
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec, Provenance

# -- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("sms = 132", "sms"),
        ("[topologie]", "topologie"),
        (f"[topologie]\nsms = {row('132')}", "topologie"),
        (f"[topology]\nsm = {row('132')}", "topology.sm"),
        (f"[limits]\nsms = {row('132')}", "limits.sms"),
        (f"[device]\nname = {row('1')}", "device.name"),
    ],
)
def test_unknown_key_is_named(write: Write, text: str, key: str) -> None:
    assert f"unknown key '{key}'" in refusal(write(f'extends = "rtx3090"\n{text}\n'))


REQUIRED = [field for field in FIELDS if field.section and field.because is None]
OPTIONAL = [field for field in FIELDS if field.because is not None]


def without(field: Field) -> str:
    """The file of the RTX 3090, but for the row of a field."""
    before, rest = RTX3090.split(f"[{field.section}]\n")
    less = re.sub(rf"^{field.name} = .*\n", "", rest, count=1, flags=re.MULTILINE)
    return f"{before}[{field.section}]\n{less}"


def test_ranges_of_more_sms_than_a_device_has_are_refused_before_they_are_listed(
    write: Write,
) -> None:
    many = str([[0, 1_000_000, 1]] * 2_000)
    said = refusal(write(variant("topology.sm_preference", many)))
    assert "topology.sm_preference: the rows have more than 65536 SMs" in said


@pytest.mark.parametrize("field", REQUIRED, ids=lambda field: field.path)
def test_missing_key_is_named(write: Write, field: Field) -> None:
    assert f"'{field.path}' is missing" in refusal(write(without(field)))


@pytest.mark.parametrize("field", OPTIONAL, ids=lambda field: field.path)
def test_key_with_a_default_may_be_missing(write: Write, field: Field) -> None:
    spec = device(write(without(field)))
    assert field.of(spec) == default_of(field)
    reason = f"the default: {field.because}"
    assert spec.provenance[field.path] == Provenance("assumed", reason)


def default_of(field: Field) -> object:
    holder = Mechanisms if field.is_mechanism else DeviceSpec
    (default,) = (item.default for item in dataclasses.fields(holder) if item.name == field.name)
    return default


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_have_no_row_that_says_no_more_than_the_default(name: str) -> None:
    spec = device(name)
    assert not [
        field.path
        for field in OPTIONAL
        if field.of(spec) == default_of(field)
        and spec.provenance[field.path].source == field.because
    ]


@pytest.mark.parametrize(
    "value",
    [
        "82",
        "{ value = 82 }",
        '{ value = 82, provenance = "paper" }',
        '{ value = 82, source = "Table I" }',
        '{ value = 82, provenance = "paper", source = "Table I", note = "" }',
    ],
)
def test_value_needs_exactly_provenance_and_source(write: Write, value: str) -> None:
    message = refusal(write(f'extends = "rtx3090"\n[topology]\nsms = {value}\n'))
    assert "topology.sms" in message
    assert "{ value, provenance, source } is needed" in message


def test_what_is_inherited_can_be_checked_but_not_what_the_parent_assumes(write: Write) -> None:
    write('extends = "rtx3090"\nchecked = "mine.jsonl"', "child.toml")
    provenance = device(write('extends = "child.toml"\nchecked = "own.jsonl"')).provenance
    assert provenance["limits.warps_per_sm"] == Provenance(INHERITED, "child", "own.jsonl")
    assert provenance["scheduler.exit_latency_ns"] == Provenance(INHERITED, "child")
    assert "checked: nothing is inherited" in refusal(write('checked = "mine.jsonl"'))
    said = refusal(write('extends = "rtx3090"\nchecked = 1'))
    assert "checked: a string is needed, got 1" in said


@pytest.mark.parametrize("kind", ['"guessed"', '"inherited"', '"Paper"', '""', "1", "[]"])
def test_unknown_provenance_names_the_four_there_are(write: Write, kind: str) -> None:
    text = (
        f'extends = "rtx3090"\n[topology]\nsms = {{ value = 82, provenance = {kind}, source = "" }}'
    )
    message = refusal(write(text))
    assert "topology.sms: provenance" in message
    assert "paper, vendor, measured, assumed" in message


def test_source_must_be_text(write: Write) -> None:
    text = 'extends = "rtx3090"\n[topology]\nsms = { value = 82, provenance = "paper", source = 1 }'
    assert "topology.sms.source: a string is needed, got 1" in refusal(write(text))


# -- extends --------------------------------------------------------------------------------------


def test_variant_changes_its_own_keys_and_keeps_the_others(write: Write) -> None:
    spec = device(write(variant("limits.blocks_per_sm", "8")))
    assert spec == dataclasses.replace(device("rtx3090"), name="mine", blocks_per_sm=8)
    assert spec.provenance["limits.blocks_per_sm"].source == "a test"
    assert spec.provenance["limits.warps_per_sm"] == Provenance(INHERITED, "rtx3090")


def test_variant_without_keys_is_its_parent_under_its_own_name(write: Write) -> None:
    assert device(write('extends = "h200"')) == dataclasses.replace(device("h200"), name="mine")


def test_what_a_parent_inherited_is_inherited_from_the_parent(write: Write) -> None:
    write(variant("limits.processing_blocks", "2"), "base.toml")
    provenance = device(write('extends = "base.toml"')).provenance
    assert set(provenance) == {field.path for field in FIELDS if field.section}
    assert set(provenance.values()) == {Provenance(INHERITED, "base")}


def test_one_mechanism_of_the_parent_can_be_switched_off(write: Write) -> None:
    spec = device(write(variant("mechanisms.warp_skip", "false")))
    assert spec.mechanisms == dataclasses.replace(device("rtx3090").mechanisms, warp_skip=False)


def test_ablation_can_be_extended(write: Write) -> None:
    spec = device(write(variant("limits.blocks_per_sm", "8", base="h200-no-warp-skip")))
    assert (spec.mechanisms.warp_skip, spec.blocks_per_sm) == (False, 8)


def test_file_extends_one_beside_it_wherever_it_is_read_from(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(variant("limits.processing_blocks", "2"), "boards/base.toml")
    child = write('extends = "base.toml"', "boards/child.toml")
    monkeypatch.chdir(tmp_path)
    here = device(Path("boards/child.toml"))
    assert device(child).processing_blocks == here.processing_blocks == 2


def test_file_may_have_the_name_of_the_device_it_extends(write: Write) -> None:
    assert device(write('extends = "h200"', "h200.toml")) == device("h200")


@pytest.mark.parametrize("spelling", ["a.toml", "./a.toml", "../boards/a.toml", "b.toml"])
def test_file_that_extends_itself_is_refused(write: Write, spelling: str) -> None:
    path = write(f'extends = "{spelling}"', "boards/a.toml")
    write('extends = "../boards/a.toml"', "boards/b.toml")
    assert "extends itself" in refusal(path)


@pytest.mark.parametrize("parent", ["absent.toml", "h300", "h200-no-such", ""])
def test_unknown_parent_is_named_with_the_file_that_extends_it(write: Write, parent: str) -> None:
    message = refusal(write(f'extends = "{parent}"'))
    assert "mine.toml: extends: " in message
    assert parent.removeprefix("h200-") in message


def test_mistake_in_a_parent_names_both_files(write: Write) -> None:
    write(variant("topology.sm", "1"), "base.toml")
    message = refusal(write('extends = "base.toml"'))
    assert "mine.toml: extends: " in message
    assert "base.toml: unknown key 'topology.sm'" in message


@pytest.mark.parametrize("value", ["1", "[]", '["h200"]', "true"])
def test_extends_takes_one_name(write: Write, value: str) -> None:
    assert "extends: a string is needed" in refusal(write(f"extends = {value}"))
