"""The C++ library as a user installs it: compiled once for all tests, on however many workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import ROOT
from once import made_once
from tbsched.hardware.catalogue import device
from tbsched.hardware.export import cpp_header

CXX = os.environ.get("CXX", "c++")
CMAKE = shutil.which("cmake") or shutil.which("cmake", path=Path(sys.executable).parent) or "cmake"
# A build that looks for Python fails.
WITHOUT_PYTHON = [
    f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Python", "Python3", "pybind11")
]

MAKE = ["-G", "Unix Makefiles"]

# The library alone, without a warning.
ALONE = ["-DTBSCHED_PYTHON=OFF", "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON", *WITHOUT_PYTHON]


def skip_without_tools() -> None:
    """Skips the test where the library cannot be built."""
    for tool in (CXX, CMAKE):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def run(*command: str | Path) -> str:
    """What a command that must succeed prints."""
    # What sanitizers load into this process does not belong into compilers.
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def configure(source: Path, folder: Path, *options: str) -> str:
    return run(CMAKE, "-S", source, "-B", folder, *options)


def build(folder: Path, *options: str) -> str:
    return run(CMAKE, "--build", folder, "--parallel", "2", *options)


def _install(folder: Path) -> None:
    built = _built_with_the_package()
    if built is None:
        built = folder / "build"
        configure(ROOT, built, *ALONE)
        build(built)
    run(CMAKE, "--install", built, "--prefix", folder / "prefix")


def take_objects(factory: pytest.TempPathFactory, built: Path) -> None:
    """Gives a build of the library, which make is to do, the objects of the static one.

    Static and shared are compiled alike (``cmake/library.cmake``), and make takes objects that are
    newer than their sources.
    """
    static = installed_library(factory).parent / "build"
    compiled = static if static.exists() else _built_with_the_package()
    assert compiled is not None
    for path in (compiled / "CMakeFiles" / "tbsched.dir").rglob("*.o"):
        own = built / path.relative_to(compiled)
        own.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, own)


def installed_shared_library(factory: pytest.TempPathFactory) -> Path:
    """As `installed_library`, but of ``BUILD_SHARED_LIBS=ON``."""

    def make(folder: Path) -> None:
        built = folder / "build"
        configure(ROOT, built, *MAKE, *ALONE, "-DBUILD_SHARED_LIBS=ON")
        take_objects(factory, built)
        assert "Unity" not in build(built)  # nothing is compiled
        run(CMAKE, "--install", built, "--prefix", folder / "prefix")

    return made_once(factory, "shared", make) / "prefix"


def _built_with_the_package() -> Path | None:
    """Where ``pip install`` built the same library, which takes a while; None: nowhere, or before
    a source was changed.
    """
    sources = [ROOT / "cmake" / "library.cmake", *(ROOT / "cpp" / "tbsched").rglob("*")]
    changed = max(path.stat().st_mtime for path in sources if path.is_file())
    cache = ROOT.joinpath("build").glob("cp*/CMakeCache.txt")
    return next(
        (
            path.parent
            for path in cache
            if f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n" in path.read_text("utf-8")
            and (library := path.with_name("libtbsched.a")).exists()
            and library.stat().st_mtime > changed
        ),
        None,
    )


def installed_library(factory: pytest.TempPathFactory) -> Path:
    """The prefix that the library is installed in, for CMAKE_PREFIX_PATH. Skips without tools."""
    skip_without_tools()
    return made_once(factory, "tbsched", _install) / "prefix"


def built(factory: pytest.TempPathFactory, source: Path) -> Path:
    """The folder with the programs of a CMake project that finds the installed library.

    They are built from a copy, so that they reach no other file of the checkout.
    H200_HEADER_FOLDER holds ``h200.h``, for those that want it.
    """
    library = installed_library(factory)

    def make(folder: Path) -> None:
        shutil.copytree(source, folder / "source")
        (folder / "h200.h").write_text(cpp_header(device("h200")), "utf-8")
        options = [f"-DCMAKE_PREFIX_PATH={library}", f"-DH200_HEADER_FOLDER={folder}"]
        configure(folder / "source", folder, *options)
        build(folder)

    return made_once(factory, source.name, make)
