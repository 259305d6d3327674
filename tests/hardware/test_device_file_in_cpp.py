"""C++ reads device files as Python does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hardware.files import DEVICES, SHIPPED, Write, refusal, row, variant
from helpers import ROOT
from tbsched.hardware.catalogue import device
from tbsched.hardware.device_fields import FIELDS

CXX = os.environ.get("CXX", "c++")
HEADER = "#include <toml++/toml.h>"

# Each of them is short enough by itself.
MANY_RANGES = variant("topology.sm_preference", str([[0, 60_000, 1]] * 2_000))
Reader = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Returns each file's values in C++, by path, or the words with which it is refused."""
    if shutil.which(CXX) is None:
        pytest.skip(f"{CXX} is not installed")
    asked = [CXX, "-std=c++20", "-E", "-x", "c++", "-"]
    if subprocess.run(asked, input=HEADER, text=True, capture_output=True).returncode:
        pytest.skip("toml++ is not installed")
    program = tmp_path_factory.mktemp("reader") / "read_devices"
    cpp = ROOT / "cpp"
    sources = [cpp / "tbsched" / "hardware" / f"{name}.cc" for name in ("check", "device_file")]
    main = ROOT / "tests" / "hardware" / "read_devices.cc"
    # Most of the time goes into headers: they are read once.
    whole = "".join(f'#include "{source}"\n' for source in (main, *sources))
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{cpp}", "-o", program]
    subprocess.run([CXX, *flags, "-x", "c++", "-"], input=whole, text=True, check=True)

    def values(*files: object) -> list[Any]:
        words = [str(program), str(DEVICES), *map(str, files)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return values


def in_python(path: object) -> dict[str, Any]:
    spec = device(str(path))
    return {field.path: json.loads(json.dumps(field.of(spec))) for field in FIELDS}


def test_shipped_devices_are_alike_field_by_field(reader: Reader) -> None:
    files = [DEVICES / f"{name}.toml" for name in SHIPPED]
    for name, found in zip(SHIPPED, reader(*files), strict=True):
        assert found == in_python(name)


def test_variants_are_alike_field_by_field(reader: Reader, write: Write) -> None:
    backwards = variant("topology.sm_preference", "[[81, 40, -1], [0, 41, 1]]")
    files = [
        write(variant("limits.blocks_per_sm", "8"), "base.toml"),
        write(f'extends = "base.toml"\n[limits]\nblocks_per_sm = {row("4")}', "child.toml"),
        write(variant("mechanisms.shared_memory", '"circular"', "xavier"), "circular.toml"),
        write(backwards, "backwards.toml"),
        write('extends = "rtx3090"\nchecked = "mine.jsonl"', "checked.toml"),
    ]
    assert reader(*files) == [*map(in_python, files)]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "[topologie]",
        variant("topology.sm", "1"),
        variant("device.name", '"x"'),
        variant("limits.processing_blocks", "8"),
        variant("limits.warps_per_sm", "46"),
        variant("limits.blocks_per_sm", str(2**40)),
        variant("topology.sm_preference", "[]"),
        variant("topology.sm_preference", "[[0, 82]]"),
        variant("topology.sm_preference", "[[0, 82, 0]]"),
        pytest.param(MANY_RANGES, id="many ranges"),
        variant("topology.gpcs", "[1]"),
        variant("topology.gpcs", "[[0, 0]]"),
        variant("allocation.shared_memory_configurations", "[2, 1]"),
        variant("mechanisms.warp_skip", "1"),
        variant("mechanisms.registers", '"scattered"'),
        variant("scheduler.policy", "1"),
        variant("device.compute_capability", '"8.9"'),
        variant("limits.blocks_per_sm", "8", base="h300"),
        'extends = "mine.toml"',
        "extends = 1",
        'checked = "mine.jsonl"',
        'extends = "rtx3090"\nchecked = 1',
        'extends = "rtx3090"\n[topology]\nsms = 82',
        'extends = "rtx3090"\n[topology]\nsms = { value = 82, provenance = "x", source = "" }',
        "[topology]\n",
        "[",
    ],
)
def test_what_python_refuses_cpp_refuses_with_the_same_key(
    reader: Reader, write: Write, text: str
) -> None:
    path = write(text)
    (found,) = reader(path)
    expected = refusal(path)
    assert isinstance(found, str)
    assert path.name in found
    key = expected.split(f"{path}: ")[-1].split(":")[0].split(" ")[0].strip("'")
    assert key in found or "unknown" in expected


def test_missing_file_is_refused(reader: Reader, tmp_path: Path) -> None:
    assert "absent.toml: no file" in reader(tmp_path / "absent.toml")[0]
