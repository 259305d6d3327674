"""The programs that run in GPGPU-Sim, unchanged and with tbsched: inputs, runs and the table."""

from __future__ import annotations

import importlib
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from helpers import ROOT

FOLDER = ROOT / "examples" / "simulator" / "workloads"
# Stands for a program on GPGPU-Sim: a kernel takes 7 cycles more where tbsched distributes.
SCRIPT = """#!/bin/sh
grep -q 'tbsched_policy device' gpgpusim.config && more=7 || more=0
[ -f "$1" ] || exit 3
echo "gpu_sim_cycle = $((100 + more))"
[ $more = 0 ] || echo
echo "gpu_sim_cycle = 50"
echo "$LD_LIBRARY_PATH" > _cuobjdump_list
wc -c < "$1" > output.txt
echo "sum = $2"
[ "$2" = fails ] && kill -9 $$
echo "GPGPU-Sim: *** exit detected ***"
"""


@pytest.fixture(scope="module")
def programs() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("programs")
    sys.path.remove(str(FOLDER))


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "program").write_text(SCRIPT, "utf-8")
    (folder / "program.sm_70.ptx").touch()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Stands for a GPGPU-Sim that is built."""
    (tmp_path / "lib" / "gcc" / "cuda" / "release").mkdir(parents=True)
    configs = tmp_path / "configs" / "tested-cfgs" / "SM7_QV100"
    configs.mkdir(parents=True)
    (configs / "gpgpusim.config").write_text("-last 1", "utf-8")
    return tmp_path


def a_program(programs: ModuleType, arguments: str = "in 4", **more: str) -> object:
    inputs = {"in": lambda: b"12345", "../../out.txt": lambda: b""}
    return programs.Program("", "", arguments, inputs=inputs, **more)


def test_run_has_cycles_of_each_kernel_and_the_results(
    programs: ModuleType, built: Path, root: Path
) -> None:
    program = a_program(programs, prints="sum = .*")
    off = programs.run(program, built, root, ["-tbsched_policy off"], 60)
    device = programs.run(program, built, root, ["-tbsched_policy device"], 60)
    assert (off.cycles, device.cycles) == ([100, 50], [107, 50])
    assert off.text == "sum = 4; output.txt"
    assert off.results == device.results
    other = programs.run(a_program(programs, "in 5", prints="sum = .*"), built, root, [], 60)
    assert other.results != off.results
    files = [
        programs.run(a_program(programs), built, root, [f"-tbsched_policy {policy}"], 60)
        for policy in ("off", "device")
    ]
    assert [one.text for one in files] == ["output.txt", "output.txt"]
    assert files[0].results == files[1].results


def test_program_that_ends_early_or_late_is_said(
    programs: ModuleType, built: Path, root: Path
) -> None:
    with pytest.raises(programs.Stopped, match=r"-9 after 2 kernels.*: sum = fails"):
        programs.run(a_program(programs, "in fails"), built, root, [], 60)
    with pytest.raises(programs.Stopped, match="3 after 0 kernels"):
        programs.run(a_program(programs, "none 4"), built, root, [], 60)
    (built / "program").write_text("#!/bin/sh\nexec sleep 60\n", "utf-8")
    with pytest.raises(programs.Stopped, match="-9 after 0 kernels"):
        programs.run(a_program(programs), built, root, [], 0.1)


def test_table_compares_kernel_by_kernel(
    programs: ModuleType,
    built: Path,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def compile_program(_program: object, _sources: Path, folder: Path) -> None:
        for path in built.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())

    monkeypatch.setattr(programs, "compile_program", compile_program)
    monkeypatch.setattr(programs, "PROGRAMS", {"mine": a_program(programs)})
    monkeypatch.setattr(sys, "argv", ["programs.py", "none", str(root), str(root), "--rounds", "2"])
    programs.main()
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith("| mine | 2 | 150 | 150 | 157 | 0 | same | ")


def test_inputs_are_the_same_each_time_and_of_their_size(programs: ModuleType) -> None:
    for program in programs.PROGRAMS.values():
        for content in program.inputs.values():
            assert content() == content()
    assert len(programs.hurricanes(9)) == 9 * 49
    assert programs.graph(5).split()[-1] == b"1"
    assert len(programs.graph(5).split()) == 1 + 2 * 5 + 2 + 2 * 6 * 5
    film = programs.film(64, 32)
    assert struct.unpack_from("<I", film, 4)[0] == len(film) - 8
    at = film.index(b"strf") + 8
    assert struct.unpack_from("<3I", film, at) == (40, 64, 32)
    at = film.index(b"00db")
    assert struct.unpack_from("<I", film, at + 4)[0] == 64 * 32


def test_constants_of_the_sources_get_other_values(programs: ModuleType, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    head = "#define SIZES 7\n  #define SIZE\t384//32 was too small\nint of[SIZE];\n"
    (sources / "a.h").write_text(head, "utf-8")
    (sources / "b.cu").write_text('#include "a.h"\n', "utf-8")
    (sources / "data").mkdir()
    as_it_is = programs.Program("sources", "b.cu")
    assert programs.with_constants(as_it_is, tmp_path, tmp_path) == sources
    program = programs.Program("sources", "b.cu", constants={"SIZE": 24})
    (tmp_path / "built").mkdir()
    copy = programs.with_constants(program, tmp_path, tmp_path / "built")
    assert (copy / "a.h").read_text("utf-8") == head.replace("384//32", "24")
    assert (copy / "b.cu").read_text("utf-8") == '#include "a.h"\n'
    assert (sources / "a.h").read_text("utf-8") == head


def test_streamcluster_has_a_point_for_each_thread(programs: ModuleType) -> None:
    """Its kernel has blocks of 512 threads, and none of them asks whether it has a point."""
    words = programs.PROGRAMS["streamcluster"].arguments.split()
    assert {int(points) % 512 for points in words[3:5]} == {0}
