"""First devices from queries and documents alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from helpers import Fake
from tbsched.calibration.boards.describe import described, heading
from tbsched.hardware.described import known_engines
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.documented import compute_capabilities, documented
from tbsched.launcher.observe import Gpu
from tbsched.launcher.query import Queried, queried
from tbsched.traces.placement import DeviceInfo


def asked(**changes: Any) -> Queried:
    """What a driver says about an RTX 4090, or about a GPU that differs from it."""
    details = {"compute_capability": changes.pop("compute_capability", "8.9"), "driver": "580.1"}
    limits = {
        "sms": 128,
        "blocks_per_sm": 24,
        "warps_per_sm": 48,
        "registers_per_sm": 65536,
        "threads_per_block": 1024,
        "shared_memory_reserve": 1024,
        "shared_memory_per_block": 101376,
        "copy_engine_count": 2,
        **changes,
    }
    info = DeviceInfo("NVIDIA GeForce RTX 4090", limits["sms"], details)
    return Queried(info, limits, limits.pop("shared_memory_per_sm", 102400), False, False)


@pytest.mark.parametrize("capability", compute_capabilities())
def test_each_compute_capability_has_its_limits_and_assumes_the_rest(
    capability: str, tmp_path: Path
) -> None:
    spec = tb.describe(compute_capability=capability, sms=10, title="Mine", name="mine")
    known = documented(capability)
    assert known is not None
    for field in FIELDS:
        if field.section:
            origin = spec.provenance[field.path]
            assert origin.kind == ("vendor" if field.name in known.limits else "assumed")
            assert known.source in origin.source or origin.kind == "assumed"
    assert spec.max_cluster == known.portable_cluster or capability == "9.0"
    tb.save_device(tmp_path / "mine.toml", spec, heading=heading(spec))
    assert tb.device(tmp_path / "mine.toml") == spec
    text = (tmp_path / "mine.toml").read_text("utf-8")
    assert f"# The other {text.count(chr(34) + 'assumed' + chr(34))} are assumed" in text
    tb.predict(tb.Sequence([tb.Launch(100, 256, 32), tb.Launch(30, 64, 40, 2048)]), spec)


@pytest.mark.parametrize(
    ("capability", "title", "sms", "base"),
    [
        ("8.9", "NVIDIA GeForce RTX 4090", 128, "rtx3090"),
        ("8.7", "", 16, "rtx3090"),
        ("9.0", "NVIDIA H100 PCIe", 114, "h100"),
        ("9.0", "NVIDIA H200", 132, "h200"),
        ("10.0", "NVIDIA B200", 148, "h200"),
        ("7.5", "Tesla T4", 40, "pegasus"),
    ],
)
def test_rules_are_those_of_the_nearest_shipped_device(
    capability: str, title: str, sms: int, base: str
) -> None:
    spec = tb.describe(compute_capability=capability, title=title or None, sms=sms)
    shipped = tb.device(base)
    assert spec.provenance["mechanisms.warp_skip"].source.startswith(f"as on {base},")
    assert (spec.policy, spec.mechanisms) == (shipped.policy, shipped.mechanisms)
    assert bool(spec.gpcs) == (capability == "9.0" and sms == 132)


def test_what_the_driver_says_comes_from_the_vendor() -> None:
    spec = described(asked(), "mine", 1)
    assert (spec.title, spec.sms) == ("NVIDIA GeForce RTX 4090", 128)
    for path in ("device.title", "topology.sms", "limits.blocks_per_sm"):
        origin = spec.provenance[path]
        assert (origin.kind, origin.source[:13]) == ("vendor", "driver 580.1:")
    assert spec.provenance["limits.registers_per_thread"].source.startswith("documented for")
    assert spec == dataclasses.replace(
        tb.describe(compute_capability="8.9", sms=128, title=spec.title), name="mine"
    )


def test_driver_says_whether_both_directions_share_a_copy_engine() -> None:
    one, two = (described(asked(copy_engine_count=count), "mine", 1) for count in (1, 2))
    assert (one.copy_engine_count, one.copy_channels) == (1, 1)
    assert (two.copy_engine_count, two.copy_channels) == (2, tb.device("rtx3090").copy_channels)
    origin = one.provenance["scheduler.copy_engine_count"]
    assert (origin.kind, origin.source[:13]) == ("vendor", "driver 580.1:")
    assert one.provenance["scheduler.copy_channels"].kind == "assumed"
    assert [known_engines(count) for count in range(5)] == [1, 1, 2, 2, 2]


def test_driver_that_contradicts_the_documents_has_measured(tmp_path: Path) -> None:
    spec = described(asked(blocks_per_sm=20, shared_memory_per_sm=131072), "mine", 1)
    origin = spec.provenance["limits.blocks_per_sm"]
    assert (spec.blocks_per_sm, origin.kind) == (20, "measured")
    assert "NVIDIA documents 24" in origin.source
    assert spec.shared_memory_configurations[-2:] == (102400, 131072)
    tb.save_device(tmp_path / "mine.toml", spec)
    assert tb.device(tmp_path / "mine.toml") == spec


def test_compute_capability_of_which_nothing_is_known_has_what_the_driver_says() -> None:
    found = asked(compute_capability="13.7", shared_memory_per_sm=110592)
    spec = described(found, "mine", 1)
    assert (spec.compute_capability, spec.blocks_per_sm) == ("13.7", 24)
    assert spec.shared_memory_configurations[-1] == 110592
    assert spec.provenance["allocation.shared_memory_configurations"].kind == "assumed"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"compute_capability": "8.9"}, "sms: is needed with compute_capability"),
        ({"sms": 4}, "sms: needs compute_capability"),
        ({"title": "x"}, "title: needs compute_capability"),
        (
            {"compute_capability": "8.8", "sms": 4},
            "nothing is documented for '8.8'; there are 2.0, 6.0",
        ),
        ({"compute_capability": "8.9", "sms": 0}, r"sms: 0 is outside 1\.\.65536"),
        ({"gpu": -1}, "gpu: -1 is outside"),
        (
            {"gpu": 1, "compute_capability": "8.9", "sms": 4},
            "gpu: does not go with compute_capability",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.describe(**given)


def test_gpu_is_asked_through_the_driver(fake_gpu: tuple[Gpu, Fake]) -> None:
    found = queried()
    assert found.info == fake_gpu[0].info
    assert not found.mps
    spec = tb.describe()
    assert (spec.title, spec.compute_capability, spec.sms) == ("Fake GPU", "9.0", 4)
    assert (spec.max_cluster, spec.provenance["limits.max_cluster"].kind) == (8, "vendor")
    assert (spec.shared_memory_configurations[-1], spec.gpcs) == (233472, ())
    assert (spec.copy_engine_count, spec.copy_channels) == (2, 4)


def test_asking_leaves_nothing_behind(fake_gpu: tuple[Gpu, Fake]) -> None:
    gpu, driver = fake_gpu
    before = driver.live()
    tb.describe()
    assert driver.live() == before
    assert gpu.observe(tb.Sequence([tb.Launch(4, 32, 16)]))[0].placed == 4


@pytest.mark.parametrize(
    ("name", "value"), [("compute_capability", ["8.9"]), ("compute_capability", 8.9), ("title", 5)]
)
def test_what_is_no_text_is_refused_and_named(name: str, value: object) -> None:
    given: dict[str, Any] = {"compute_capability": "8.9", "sms": 3, name: value}
    with pytest.raises(TypeError, match=rf"describe\.{name}: a str is needed"):
        tb.describe(**given)
