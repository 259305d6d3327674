"""The compiled probe kernel, and the patching of its register count and local memory."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
import subprocess
import sysconfig
from pathlib import Path

import pytest

launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")

FEW = 16  # an SM gives no warp fewer
CUBINS = sorted(name for name in launcher.images() if name.startswith("sm_"))
DEPENDENT = sorted(name for name in launcher.images() if name.startswith("dependent_sm_"))


def cuobjdump() -> str:
    """The tool of the CUDA toolkit, or of the package nvidia-cuda-cuobjdump."""
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    places = [os.environ["PATH"], "/usr/local/cuda/bin", *map(str, packages.glob("*/bin"))]
    tool = shutil.which("cuobjdump", path=os.pathsep.join(places))
    if tool is None:
        pytest.skip("no cuobjdump")
    return tool


def needed(image: bytes) -> int:
    """The registers of the probe itself, as the launcher says."""
    with pytest.raises(ValueError, match="needs") as refusal:
        launcher.patch(image, 1, 0)
    return int(re.findall(r"needs (\d+)", str(refusal.value))[0])


def usage(cubin: bytes, folder: Path) -> dict[str, int]:
    """What cuobjdump says of the one kernel in a cubin."""
    file = folder / "probe.cubin"
    file.write_bytes(cubin)
    text = subprocess.run(
        [cuobjdump(), "--dump-resource-usage", str(file)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {key: int(value) for key, value in re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", text)}


def test_there_is_ptx_for_gpus_newer_than_the_toolkit() -> None:
    ptx = [image for name, image in launcher.images().items() if "compute_" in name]
    assert len(ptx) == 4
    for image in ptx:
        assert b".entry tbsched_probe" in image
        assert image.endswith(b"\0")
    assert sorted(b"griddepcontrol" in image for image in ptx) == [False, False, False, True]


@pytest.mark.parametrize("name", CUBINS)
def test_probe_needs_few_registers_and_no_memory(name: str, tmp_path: Path) -> None:
    assert needed(launcher.images()[name]) <= FEW
    found = usage(launcher.images()[name], tmp_path)
    assert found["REG"] == needed(launcher.images()[name])
    assert {**found, "REG": 0} == {"REG": 0, "STACK": 0, "SHARED": 0, "LOCAL": 0}


def test_the_dependent_probe_needs_few_registers_from_hopper_on() -> None:
    numbers = [int(name.removeprefix("dependent_sm_")) for name in DEPENDENT]
    assert numbers == [int(n) for n in (name[3:] for name in CUBINS) if int(n) >= 90]
    assert needed(launcher.images()["dependent_sm_90"]) <= FEW
    for name in DEPENDENT:
        image = launcher.images()[name]
        assert needed(image) <= 24
        assert launcher.patch(image, needed(image), 0) == image


def test_the_meeting_probe_needs_few_registers_everywhere() -> None:
    meeting = {name: image for name, image in launcher.images().items() if "meeting_sm" in name}
    assert sorted(meeting) == [f"meeting_{name}" for name in CUBINS]
    for name, image in meeting.items():
        number = int(name[11:])
        assert needed(image) <= (FEW if number < 100 else 18 if number < 120 else 24)
        assert launcher.patch(image, needed(image), 0) == image


def test_the_body_probe_needs_as_many_registers_as_a_call_everywhere() -> None:
    body = {name: image for name, image in launcher.images().items() if "body_sm" in name}
    assert sorted(body) == [f"body_{name}" for name in CUBINS]
    for image in body.values():
        assert needed(image) == 24
        assert launcher.patch(image, 24, 0) == image


@pytest.mark.parametrize("name", CUBINS)
@pytest.mark.parametrize(("registers", "local_memory"), [(FEW, 0), (33, 8), (255, 4096)])
def test_cuobjdump_reads_back_what_was_patched(
    name: str, registers: int, local_memory: int, tmp_path: Path
) -> None:
    found = usage(launcher.patch(launcher.images()[name], registers, local_memory), tmp_path)
    assert found["REG"] == registers
    assert found["STACK"] == local_memory


@pytest.mark.parametrize("name", CUBINS)
def test_the_probes_own_count_changes_nothing(name: str) -> None:
    image = launcher.images()[name]
    assert launcher.patch(image, needed(image), 0) == image


@pytest.mark.parametrize("name", CUBINS)
def test_only_counts_change(name: str) -> None:
    image = launcher.images()[name]
    patched = launcher.patch(image, 200, 0)
    assert len(patched) == len(image)
    changed = [(old, new) for old, new in zip(image, patched, strict=True) if old != new]
    # Once in .nv.info; and in the section's flags before 9.0, in the finalizer's copy from 10.0 on.
    assert changed == [(needed(image), 200)] * (1 if name == "sm_90" else 2)


def test_last_register_count_is_patched_one_more_is_refused() -> None:
    image = launcher.images()[CUBINS[0]]
    assert launcher.patch(image, 255, 0)
    with pytest.raises(
        ValueError, match=rf"Launch\.registers: 256 is outside {needed(image)}\.\.255"
    ):
        launcher.patch(image, 256, 0)


def test_fewer_registers_than_the_probe_needs_are_refused() -> None:
    image = launcher.images()[CUBINS[0]]
    fewer = needed(image) - 1
    with pytest.raises(ValueError, match=rf"Launch\.registers: {fewer} is outside {fewer + 1}\.\."):
        launcher.patch(image, fewer, 0)


def test_negative_local_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Launch\.local_memory: -1"):
        launcher.patch(launcher.images()[CUBINS[0]], 16, -1)


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"x" * 64, b"\0" * 5000])
def test_what_is_no_cubin_is_refused(image: bytes) -> None:
    with pytest.raises(ValueError, match="not a cubin"):
        launcher.patch(image, 16, 0)


@pytest.mark.parametrize("name", ["sm_75", "sm_90", "sm_120"])
def test_no_damage_makes_it_read_out_of_range(name: str) -> None:
    if name not in CUBINS:
        pytest.skip("this nvcc does not know it")
    image = launcher.images()[name]
    section_headers = struct.unpack_from("<Q", image, 40)[0]
    for cut in range(0, section_headers, 61):
        with pytest.raises(ValueError, match="not a cubin"):
            launcher.patch(image[:cut], 16, 0)
    for place in [*range(64), *range(section_headers, len(image), 4)]:
        damaged = image[:place] + b"\xff\xff\xff\xff" + image[place + 4 :]
        with contextlib.suppress(ValueError):
            launcher.patch(damaged, 16, 0)
