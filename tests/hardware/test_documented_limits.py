"""What NVIDIA documents per compute capability is not contradicted, but by a measurement."""

from __future__ import annotations

import dataclasses

import pytest

from hardware.files import DEVICES, Write, refusal, row, variant
from tbsched.hardware.catalogue import device, devices
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.documented import compute_capabilities, documented

ADA = f'extends = "rtx3090"\n[device]\ncompute_capability = {row(chr(34) + "8.9" + chr(34))}\n'
VENDOR = '{ value = %s, provenance = "vendor", source = "a leaflet" }'


def test_ada_card_does_not_pass_with_the_block_slots_of_an_ampere_card(write: Write) -> None:
    message = refusal(write(ADA))
    assert "mine.toml: limits.blocks_per_sm: 16 contradicts the 24 that NVIDIA documents" in message
    assert "for compute capability 8.9; this file must have the row, with 24" in message


def test_ada_card_with_its_own_row_passes(write: Write) -> None:
    spec = device(write(f"{ADA}[limits]\nblocks_per_sm = {VENDOR % 24}\n"))
    assert (spec.blocks_per_sm, spec.warps_per_sm) == (24, 48)


def test_row_that_contradicts_is_refused_unless_it_was_measured(write: Write) -> None:
    wrong = f"{ADA}[limits]\nblocks_per_sm = "
    assert "blocks_per_sm: 20 contradicts the 24" in refusal(write(wrong + VENDOR % 20))
    assert device(write(wrong + row("20"))).blocks_per_sm == 20


def test_measurement_of_the_parent_proves_nothing_for_the_child(write: Write) -> None:
    write(variant("limits.blocks_per_sm", "20"), "base.toml")
    message = refusal(write('extends = "base.toml"'))
    assert "mine.toml: limits.blocks_per_sm: 20 contradicts the 16" in message


def test_clusters_are_not_inherited_by_what_has_none(write: Write) -> None:
    message = refusal(write(variant("device.compute_capability", '"8.0"', base="h200")))
    assert "limits.max_cluster: 16 contradicts the 1 " in message


def test_default_that_contradicts_is_refused(write: Write) -> None:
    v100 = (DEVICES / "v100.toml").read_text("utf-8")
    message = refusal(write(v100.replace('value = "7.0"', 'value = "7.2"')))
    assert "scheduler.resident_grids: 128 contradicts the 16 " in message


def test_largest_shared_memory_configuration_is_compared(write: Write) -> None:
    key = "shared_memory_configurations"
    sizes = VENDOR % "[8192, 102400, 135168]"
    message = refusal(write(f'extends = "rtx3090"\n[allocation]\n{key} = {sizes}\n'))
    assert f"allocation.{key}: 135168 contradicts the 102400 " in message
    fewer = VENDOR % "[8192, 102400]"
    text = f'extends = "rtx3090"\n[allocation]\n{key} = {fewer}\n'
    assert device(write(text)).shared_memory_configurations == (8192, 102400)


def test_configuration_that_no_such_gpu_has_is_refused(write: Write) -> None:
    sizes = VENDOR % "[8192, 9216, 102400]"
    text = f'extends = "rtx3090"\n[allocation]\nshared_memory_configurations = {sizes}\n'
    assert "shared_memory_configurations: 9216 contradicts the 16384 " in refusal(write(text))


def test_child_of_an_ablation_lacks_what_the_ablation_takes_out(write: Write) -> None:
    assert device(write('extends = "rtx3090-no-processing-blocks"')).processing_blocks == 1


@pytest.mark.parametrize("name", devices())
def test_shipped_device_agrees_even_where_it_was_measured(name: str) -> None:
    spec = device(name)
    known = documented(spec.compute_capability)
    assert known is not None
    for field in FIELDS:
        if field.name not in known.limits:
            continue
        value, limit = field.of(spec), known.limits[field.name]
        if isinstance(limit, tuple):
            # Not all: blocks with a reserve never set an SM to no shared memory.
            assert (value[-1], set(value) <= set(limit)) == (limit[-1], True), field.path
        else:
            assert value == limit, field.path


def test_everything_from_7_0_on_is_documented_with_its_source() -> None:
    known = {
        "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.1", "10.3", "11.0",
        "12.0", "12.1",
    }  # fmt: skip
    assert known <= set(compute_capabilities())
    for name in compute_capabilities():
        row = documented(name)
        assert row is not None
        assert "CUDA" in row.source
        assert ("max_cluster" in row.limits) == (row.portable_cluster == 1) == (float(name) < 9)
        assert (
            row.limits["shared_memory_per_block"] + row.limits["shared_memory_reserve"]
            <= (row.limits["shared_memory_configurations"][-1])
        )
    assert documented("5.2") is None


@pytest.mark.parametrize("capability", ["5.2", "13.7", "8.60", ""])
def test_unknown_compute_capability_is_not_checked(write: Write, capability: str) -> None:
    text = variant("device.compute_capability", f'"{capability}"')
    blocks = f"[limits]\nblocks_per_sm = {VENDOR % 5}\n"
    assert device(write(text + blocks)).blocks_per_sm == 5


def test_spec_changed_in_python_is_not_compared() -> None:
    assert dataclasses.replace(device("h200"), blocks_per_sm=5).blocks_per_sm == 5
