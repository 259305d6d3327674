"""The package: what ``cmake --install`` and ``pip install`` each leave, and who can use it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from cpp_library import (
    CMAKE,
    MAKE,
    WITHOUT_PYTHON,
    build,
    configure,
    installed_library,
    installed_shared_library,
    run,
    skip_without_tools,
    take_objects,
)
from helpers import ROOT, final
from tbsched.hardware.catalogue import device
from tbsched.hardware.export import cpp_header
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(tbsched {version} CONFIG REQUIRED)
"""


def test_every_header_is_installed_and_one_library(library: Path) -> None:
    files = {path.relative_to(library) for path in library.rglob("*") if path.is_file()}
    headers = {path.relative_to(ROOT / "cpp") for path in (ROOT / "cpp/tbsched").rglob("*.h")}
    needs_toml = {Path("tbsched/hardware/device_file.h")}
    generated = {Path("tbsched/version.h")}
    assert {path for path in files if path.suffix == ".h"} == {
        Path("include") / header for header in headers - needs_toml | generated
    }
    rest = sorted(path.name for path in files if path.suffix != ".h")
    assert rest == [
        "libtbsched.a",
        "tbsched-config-version.cmake",
        "tbsched-config.cmake",
        "tbsched-targets-release.cmake",
        "tbsched-targets.cmake",
    ]


def test_installed_package_names_no_folder_it_was_built_in(library: Path) -> None:
    for path in library.rglob("*.cmake"):
        text = path.read_text("utf-8")
        assert str(ROOT) not in text
        assert str(library) not in text


def test_installed_headers_need_nothing_but_each_other(library: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        PROJECT.format(version="")
        + "add_library(headers OBJECT all.cc)\n"
        + "target_link_libraries(headers PRIVATE tbsched::tbsched)\n"
        + "target_compile_options(headers PRIVATE -Wall -Wextra -Werror)\n",
        "utf-8",
    )
    include = library / "include"
    names = sorted(str(path.relative_to(include)) for path in include.rglob("*.h"))
    (tmp_path / "all.cc").write_text("".join(f'#include "{name}"\n' for name in names), "utf-8")
    configure(tmp_path, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={library}")
    build(tmp_path / "build")


def program(folder: Path, library: Path, code: str) -> str:
    """What a stranger's program prints that finds the installed library."""
    (folder / "CMakeLists.txt").write_text(
        PROJECT.format(version="0.2")
        + "add_executable(stranger main.cc)\n"
        + "target_link_libraries(stranger PRIVATE tbsched::tbsched)\n",
        "utf-8",
    )
    (folder / "main.cc").write_text(code, "utf-8")
    configure(folder, folder / "build", f"-DCMAKE_PREFIX_PATH={library}")
    build(folder / "build")
    return run(folder / "build" / "stranger")


USES_THE_UMBRELLA = """
#include <iostream>
#include <tbsched/tbsched.h>

#include "rtx3090.h"

int main() {
  const tbsched::DeviceSpec spec = rtx3090();
  const tbsched::Model model(spec);
  const tbsched::Sequence sequence = {tbsched::Launch{.blocks = 3, .threads = 64, .registers = 16}};
  std::cout << tbsched::kVersion << ' ' << tbsched::kVersionMajor << ' ' << tbsched::kVersionMinor
            << ' ' << tbsched::kVersionPatch;
  const std::vector<tbsched::LaunchTrace> traces = tbsched::predict(model, sequence, {});
  for (const int32_t sm : traces.at(0).smid) std::cout << ' ' << sm;
}
"""


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_program_with_the_umbrella_header(
    kind: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    install = installed_library if kind == "static" else installed_shared_library
    library = install(tmp_path_factory)
    (tmp_path / "rtx3090.h").write_text(cpp_header(device("rtx3090")), "utf-8")
    printed = program(tmp_path, library, USES_THE_UMBRELLA).split()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    sms = final(predict(Sequence([Launch(3, 64, 16)]), "rtx3090"))[0]
    assert printed == [version, *version.split("."), *map(str, sms)]


def test_shared_library_is_named_by_its_version(tmp_path_factory: pytest.TempPathFactory) -> None:
    library = installed_shared_library(tmp_path_factory)
    names = sorted(path.name for path in library.rglob("libtbsched*"))
    assert names == ["libtbsched.so", "libtbsched.so.0.2", "libtbsched.so.0.2.0"]


def test_python_package_refuses_a_shared_library(tmp_path: Path) -> None:
    skip_without_tools()
    command = [CMAKE, "-S", ROOT, "-B", tmp_path, "-DBUILD_SHARED_LIBS=ON"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "BUILD_SHARED_LIBS=ON needs TBSCHED_PYTHON=OFF" in done.stderr


def test_headers_of_the_pages_and_examples_are_in_the_umbrella_header() -> None:
    umbrella = (ROOT / "cpp/tbsched/tbsched.h").read_text("utf-8")
    sources = (ROOT / "examples").rglob("*.*")
    text = "".join(path.read_text("utf-8") for path in sources if path.suffix in {".cc", ".h"})
    for page in ("embed-cpp.md", "simulators.md"):
        text += (ROOT / "docs/how-to" / page).read_text("utf-8")
    named = set(re.findall(r"tbsched/(?:\w+/)+\w+\.h", text)) - {"tbsched/tbsched.h"}
    named.discard("tbsched/hardware/device_file.h")  # needs toml++
    assert named
    assert {name for name in named if f'#include "{name}"\n' not in umbrella} == set()


def test_another_version_is_refused(library: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(version="0.1"), "utf-8")
    command = [CMAKE, "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={library}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "tbsched-config.cmake, version: 0.2" in done.stderr


def test_project_that_fetches_it_builds_neither_python_nor_launcher(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its own code is compiled, and linked with the library's objects."""
    skip_without_tools()
    options = [f"-DFETCHCONTENT_SOURCE_DIR_TBSCHED={ROOT}", "-DTBSCHED_TOML=OFF"]
    configure(ROOT / "examples/simulator", tmp_path, *MAKE, *options, *WITHOUT_PYTHON)
    take_objects(tmp_path_factory, tmp_path / "_deps" / "tbsched-build")
    assert "Unity" not in build(tmp_path, "--target", "adapter")
    cache = (tmp_path / "CMakeCache.txt").read_text("utf-8")
    assert "TBSCHED_PYTHON:BOOL=OFF" in cache
    assert "TBSCHED_INSTALL:BOOL=OFF" in cache
    assert f"tbsched_SOURCE_DIR:STATIC={ROOT}\n" in cache
    assert "NVCC" not in cache
    run(CMAKE, "--install", tmp_path, "--prefix", tmp_path / "prefix")
    assert not (tmp_path / "prefix").exists()


def test_python_package_has_no_file_of_the_cpp_package() -> None:
    try:
        files = metadata.files("tbsched")
    except metadata.PackageNotFoundError:
        pytest.skip("tbsched is on the path, not installed")
    assert files is not None
    folders = {path.parts[0] for path in files if path.parts[0] != ".."}
    assert all(re.fullmatch(r"tbsched|tbsched-[\w.]+\.dist-info", name) for name in folders)
    assert {path.name for path in files if path.parts[0] == ".."} == {"tbsched"}
    suffixes = {path.suffix for path in files if path.parts[0] == "tbsched"}
    assert suffixes <= {
        *(".py", ".pyi", ".pyc", ".so", ".typed"),
        *(".toml", ".json", ".jsonl", ".xz", ".html", ".css", ".ptx"),
    }
