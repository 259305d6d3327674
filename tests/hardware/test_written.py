"""Device files that tbsched writes say what the device says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import tbsched as tb
from tbsched.hardware.spec import Provenance


@pytest.mark.parametrize("name", [*tb.devices(), "h200-no-processing-blocks"])
def test_saved_device_is_the_same_but_inherits_nothing(name: str, tmp_path: Path) -> None:
    spec = tb.device(name)
    tb.save_device(tmp_path / "mine.toml", spec, heading="One line.\n\nAnother: ä.")
    read = tb.device(tmp_path / "mine.toml")
    assert dataclasses.replace(read, name=name) == spec
    for path, origin in spec.provenance.items():
        if origin.kind == "inherited":
            kind, why = ("measured", f": {origin.checked}") if origin.checked else ("assumed", "")
            source = f"as on {origin.source}{why}"
            assert read.provenance[path] == Provenance(kind, source)
        else:
            assert read.provenance[path] == origin
    text = (tmp_path / "mine.toml").read_text("utf-8")
    assert text.startswith("# One line.\n#\n# Another: ä.\n\n[device]\n")


def test_odd_title_and_order_survive(tmp_path: Path) -> None:
    spec = dataclasses.replace(
        tb.device("xavier"), name="mine", title='"é\\\n\x01', sm_preference=(7, 5, 3, 0, 1, 2, 6, 4)
    )
    tb.save_device(tmp_path / "mine.toml", spec)
    assert tb.device(tmp_path / "mine.toml") == spec


def test_what_is_no_device_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a DeviceSpec is needed"):
        tb.save_device(tmp_path / "mine.toml", "h200")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
