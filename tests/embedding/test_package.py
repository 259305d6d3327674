"""The package: what ``cmake --install`` and ``pip install`` each leave, and who can use it."""

from __future__ import annotations

import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from cpp_library import CMAKE, WITHOUT_PYTHON, build, configure, run, skip_without_tools
from helpers import ROOT

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(tbsched {version} CONFIG REQUIRED)
"""


def test_every_header_is_installed_and_one_library(library: Path) -> None:
    files = {path.relative_to(library) for path in library.rglob("*") if path.is_file()}
    headers = {path.relative_to(ROOT / "cpp") for path in (ROOT / "cpp/tbsched").rglob("*.h")}
    needs_toml = {Path("tbsched/hardware/device_file.h")}
    assert {path for path in files if path.suffix == ".h"} == {
        Path("include") / header for header in headers - needs_toml
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


def test_another_version_is_refused(library: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(version="0.1"), "utf-8")
    command = [CMAKE, "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={library}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "tbsched-config.cmake, version: 0.2" in done.stderr


def test_project_that_fetches_it_builds_neither_python_nor_launcher(tmp_path: Path) -> None:
    """Its own code is compiled; the library itself is, and is linked, in the other tests."""
    skip_without_tools()
    options = [f"-DFETCHCONTENT_SOURCE_DIR_TBSCHED={ROOT}", "-DCMAKE_OPTIMIZE_DEPENDENCIES=ON"]
    configure(ROOT / "examples/simulator", tmp_path, *options, *WITHOUT_PYTHON)
    build(tmp_path, "--target", "adapter")
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
