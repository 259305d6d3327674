"""The library that records what a CUDA program launches, in this process or in another one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from importlib import util
from pathlib import Path

from tbsched.errors import NoGpuError

_LIBRARY = "libtbsched_capture.so"
_DRIVER = "libcuda.so.1"
_MAX_TEXT = 4096
_HANG_AFTER = "TBSCHED_HANG_AFTER"


def library() -> Path:
    """Returns the path of the library.

    Raises:
        ImportError: the package was built without it.
    """
    launcher_spec = util.find_spec("tbsched._launcher")  # built with it
    if launcher_spec is not None and launcher_spec.origin is not None:
        path = Path(launcher_spec.origin).with_name(_LIBRARY)
        if path.exists():
            return path
    raise ImportError(
        "capture: this tbsched was built without CUPTI's headers; install a CUDA toolkit with "
        "nvcc and CUPTI (cupti.h), then install tbsched again from its sources"
    )


def injected(
    environment: Mapping[str, str], output: Path, hang_after: float | None = None
) -> dict[str, str]:
    """Returns the environment of a program that is to be captured into a file.

    Args:
        environment: of this process.
        output: the file.
        hang_after: seconds without news after which it is asked why the program hangs; None: never.

    Raises:
        ImportError: as :func:`library`.
        ValueError: another tool is injected already.
    """
    library_path = str(library())
    injected_path = environment.get("CUDA_INJECTION64_PATH", library_path)
    if injected_path != library_path:
        raise ValueError(
            f"CUDA_INJECTION64_PATH: {injected_path} is injected already, and the driver takes one "
            "library only; run without it"
        )
    added = {
        "CUDA_INJECTION64_PATH": library_path,
        "TBSCHED_CAPTURE": os.fspath(output.absolute()),
        **({} if hang_after is None else {_HANG_AFTER: str(hang_after)}),
    }
    return {name: value for name, value in environment.items() if name != _HANG_AFTER} | added


def start(output: Path) -> Path:
    """Records what this process launches from now on into a file.

    Returns:
        The file: another one if something is at the path.

    Raises:
        ImportError: as :func:`library`.
        NoGpuError: there is no CUDA driver.
        RuntimeError: a capture runs already, CUPTI is missing or used by another profiler, or the
            file cannot be written.
    """
    try:
        return Path(_call("tbsched_capture_start", os.fsencode(output.absolute())))
    except RuntimeError as error:
        if "CUPTI_ERROR" in str(error):
            _check_driver()
        raise


def _check_driver() -> None:
    """Says that there is no driver; CUPTI only says that something is wrong."""
    try:
        ctypes.CDLL(os.environ.get("TBSCHED_LIBCUDA", _DRIVER))
    except OSError as error:
        raise NoGpuError(
            f"capture: looked for the CUDA driver, {_DRIVER}: {error}; TBSCHED_LIBCUDA may name "
            "another place"
        ) from None


def stop() -> None:
    """Waits for the GPU, and closes the file of the capture.

    Raises:
        RuntimeError: CUPTI refused.
    """
    _call("tbsched_capture_stop")


def _call(name: str, *arguments: bytes) -> str:
    """Calls a function of the capture library, and returns its text."""
    text = ctypes.create_string_buffer(_MAX_TEXT)
    function = ctypes.CDLL(str(library()))[name]
    if not function(*arguments, text, ctypes.c_size_t(_MAX_TEXT)):
        raise RuntimeError(f"capture: {text.value.decode(errors='replace')}")
    return os.fsdecode(text.value)
