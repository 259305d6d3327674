"""The shipped devices say everything, and where it comes from; so do their ablations."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from pathlib import Path

import pytest

from hardware.files import RTX3090, SHIPPED, Write, refusal, row, variant
from tbsched.hardware.catalogue import ablations, device, devices, nearest
from tbsched.hardware.device_file import PROVENANCES
from tbsched.hardware.spec import DeviceSpec

HOPPER = {"h100", "h200"}

# -- what is shipped ------------------------------------------------------------------------------


def test_shipped_devices_are_listed_in_order() -> None:
    assert devices() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_device_loads_under_its_own_name(name: str) -> None:
    spec = device(name)
    assert spec.name == name
    assert hash(spec) == hash(device(name))
    assert device(spec) is spec


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_value_has_a_provenance_and_a_source(name: str) -> None:
    spec = device(name)
    keys = {path.split(".")[1] for path in spec.provenance}
    fields = {field.name for field in dataclasses.fields(DeviceSpec)}
    switches = {field.name for field in dataclasses.fields(spec.mechanisms)}
    assert keys == (fields - {"name", "mechanisms", "provenance"}) | switches
    for origin in spec.provenance.values():
        assert origin.kind in (*PROVENANCES, "inherited")
        assert origin.source.strip()


@pytest.mark.parametrize("name", sorted(set(SHIPPED) - HOPPER))
def test_only_hopper_claims_measurements(name: str) -> None:
    assert not [
        path for path, origin in device(name).provenance.items() if origin.kind == "measured"
    ]


@pytest.mark.parametrize(("name", "ablation"), [*itertools.product(SHIPPED, ablations())])
def test_every_ablation_of_every_shipped_device_loads(name: str, ablation: str) -> None:
    spec = device(f"{name}-{ablation}")
    assert spec.name == f"{name}-{ablation}"
    assert spec.title == device(name).title


@pytest.mark.parametrize(
    ("name", "sms", "tpcs", "gpcs", "warps", "blocks"),
    [
        ("a100", 108, 54, 0, 64, 32),
        ("c2070", 14, 14, 0, 48, 8),
        ("h100", 132, 66, 8, 64, 32),
        ("h200", 132, 66, 8, 64, 32),
        ("pegasus", 44, 22, 0, 32, 16),
        ("rtx3090", 82, 41, 0, 48, 16),
        ("tx2", 2, 2, 1, 64, 32),
        ("v100", 80, 40, 0, 64, 32),
        ("xavier", 8, 4, 1, 64, 32),
    ],
)
def test_shipped_sizes(name: str, sms: int, tpcs: int, gpcs: int, warps: int, blocks: int) -> None:
    spec = device(name)
    assert (spec.sms, spec.tpcs, len(spec.gpcs)) == (sms, tpcs, gpcs)
    assert (spec.warps_per_sm, spec.blocks_per_sm) == (warps, blocks)


@pytest.mark.parametrize("name", sorted(set(SHIPPED) - HOPPER))
def test_all_but_hopper_prefer_even_sms_then_odd_ones(name: str) -> None:
    spec = device(name)
    assert spec.sm_preference == (*range(0, spec.sms, 2), *range(1, spec.sms, 2))


@pytest.mark.parametrize("name", SHIPPED)
def test_runtime_reserves_1_kb_per_block_from_compute_capability_8_and_0_before(name: str) -> None:
    spec = device(name)
    assert spec.shared_memory_reserve == (1024 if float(spec.compute_capability) >= 8 else 0)


@pytest.mark.parametrize("name", SHIPPED)
def test_shared_memory_unit_is_256_bytes_from_compute_capability_3_to_7_and_128_otherwise(
    name: str,
) -> None:
    spec = device(name)
    assert spec.shared_memory_unit == (256 if 3 <= float(spec.compute_capability) < 8 else 128)


@pytest.mark.parametrize("name", SHIPPED)
def test_only_hopper_has_circular_shared_memory_and_asks_for_headroom(name: str) -> None:
    mechanisms = device(name).mechanisms
    assert (mechanisms.shared_memory == "circular") == (name in HOPPER)
    assert mechanisms.configuration_headroom == (name in HOPPER)


def test_tpc_of_no_gpc_is_a_singleton() -> None:
    gpc_of_tpc = device("h200").gpc_of_tpc
    assert gpc_of_tpc[60:] == (6, 7, -1, -1, -1, -1)


def test_unknown_gpc_map_puts_every_tpc_outside_the_gpcs() -> None:
    assert set(device("rtx3090").gpc_of_tpc) == {-1}


def test_odd_number_of_sms_leaves_one_alone_in_the_last_tpc(write: Write) -> None:
    text = variant("topology.sms", "81") + f"sm_preference = {row('[[0, 81, 1]]')}\n"
    assert device(write(text)).tpcs == 41


@pytest.mark.parametrize(
    ("capability", "base"),
    [("2.1", "c2070"), ("3.5", "c2070"), ("5.2", "tx2"), ("8.9", "rtx3090"), ("13.0", "h200")],
)
def test_nearest_device_is_at_most_one_major_version_older_if_there_is_one(
    capability: str, base: str
) -> None:
    assert nearest(capability, "", 132).name == base


# -- ablations ------------------------------------------------------------------------------------


def test_ablation_changes_what_it_names_and_nothing_else() -> None:
    whole, ablated = device("h200"), device("h200-no-warp-skip")
    mechanisms = dataclasses.replace(whole.mechanisms, warp_skip=False)
    assert ablated == dataclasses.replace(whole, name="h200-no-warp-skip", mechanisms=mechanisms)


def test_ablated_value_no_longer_claims_the_source_of_the_one_it_replaces() -> None:
    whole, ablated = device("h200").provenance, device("h200-free-warps").provenance
    changed = {path for path in whole if whole[path] != ablated[path]}
    assert changed == {"mechanisms.strict_round_robin", "mechanisms.warp_skip"}
    assert {ablated[path].kind for path in changed} == {"assumed"}
    assert device("h200-paper-order").provenance["topology.sm_preference"].kind == "assumed"
    assert device("h200").provenance["topology.sm_preference"].kind == "measured"


def test_paper_order_of_the_h200_is_even_then_odd() -> None:
    assert device("h200-paper-order").sm_preference == (*range(0, 132, 2), *range(1, 132, 2))


def test_unknown_ablation_names_the_ones_there_are() -> None:
    with pytest.raises(ValueError, match=r"'h200' has no ablation 'no-warps'.*no-warp-skip"):
        device("h200-no-warps")


def test_ablation_of_an_ablation_is_refused() -> None:
    with pytest.raises(ValueError, match="no ablation 'no-warp-skip-paper-order'"):
        device("h200-no-warp-skip-paper-order")


# -- names and paths ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "h300", "H200", "h200 ", "ablations", "no-warp-skip"])
def test_unknown_name_is_refused_with_the_names_there_are(name: str) -> None:
    names = re.escape(repr(name)) + r" is unknown.*a100, c2070, h100, h200"
    with pytest.raises(ValueError, match=names):
        device(name)


@pytest.mark.parametrize("wrong", [None, 1, 1.5, b"h200", ["h200"], object(), DeviceSpec])
def test_neither_name_nor_path_nor_spec_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="a name, a path or a DeviceSpec is needed"):
        device(wrong)  # type: ignore[arg-type]


def test_path_of_bytes_is_a_type_error() -> None:
    class BytesPath(os.PathLike[bytes]):
        def __fspath__(self) -> bytes:
            return b"mine.toml"

    with pytest.raises(TypeError, match="a name, a path or a DeviceSpec is needed"):
        device(BytesPath())  # type: ignore[arg-type]


def test_path_may_be_a_string_or_a_path(write: Write) -> None:
    path = write(RTX3090)
    assert device(path) == device(str(path))
    assert device(path) == dataclasses.replace(device("rtx3090"), name="mine")


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert "no file" in refusal(tmp_path / "absent.toml")


def test_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    assert "cannot be read" in refusal(tmp_path / "folder.toml")


@pytest.mark.parametrize(
    "text", ["[", "a = 1\na = 2", "x = " + "9" * 5000, "x = " + "[" * 100_000], ids=range(4)
)
def test_what_is_not_toml_is_refused(write: Write, text: str) -> None:
    assert "not TOML" in refusal(write(text))


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'title = "\xe9"')
    assert "not TOML" in refusal(path)
