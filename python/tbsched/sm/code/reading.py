"""From a compiled kernel, whatever compiled it, to the instructions of its machine code."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tbsched import storage
from tbsched.errors import did_you_mean, shown
from tbsched.launcher.kernels.usage import is_of
from tbsched.sm.characterization.toolkit import (
    Instruction,
    architecture_of,
    code_of,
    disassemble,
    refusing_torn,
    sections,
)

_TEXT = ".text."
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class _Source:
    """A library whose kernels keep their machine code.

    Attributes:
        name: what it is called.
        takes: whether an object is a kernel of it.
        code: the cubin, and the name of the kernel; None: the only one.
    """

    name: str
    takes: Callable[[Any], bool]
    code: Callable[[Any], tuple[bytes, str | None]]


def _of_file(kernel: Any) -> tuple[bytes, str | None]:
    path_and_name, name = kernel if isinstance(kernel, tuple) else (kernel, None)
    return storage.content(storage.as_path(path_and_name)), name


def _of_bytes(kernel: Any) -> tuple[bytes, str | None]:
    return kernel if isinstance(kernel, tuple) else (kernel, None)


def _of_object_code(kernel: Any) -> tuple[bytes, str | None]:
    code, name = kernel
    return bytes(code.code), name


def _of_cupy(kernel: Any) -> tuple[bytes, str | None]:
    """Returns the cubin of a RawKernel of CuPy, and the kernel's name."""
    from cupy.cuda import compiler

    if not kernel.code:
        raise ValueError("kernel: of a RawModule's function give the cubin: (path, name)")
    compiled_code, _ = compiler.compile_using_nvrtc(kernel.code, tuple(kernel.options))
    if not isinstance(compiled_code, bytes) or not compiled_code.startswith(_ELF):
        raise ValueError(
            "kernel: CuPy compiles to PTX here, not to a cubin; unset CUPY_COMPILE_WITH_PTX"
        )
    return compiled_code, kernel.name


def _of_triton(kernel: Any) -> tuple[bytes, str | None]:
    return kernel.asm["cubin"], str(kernel.metadata.name)


def _of_numba(kernel: Any) -> tuple[bytes, str | None]:
    """Returns the cubin of a kernel of Numba, and the kernel's name."""
    compiled = kernel
    if hasattr(kernel, "overloads"):
        if len(kernel.overloads) != 1:
            raise ValueError("kernel: pass one overload, as kernel.overloads[signature]")
        (compiled,) = kernel.overloads.values()
    cubin = compiled._codelibrary.get_cubin()
    return bytes(getattr(cubin, "code", cubin)), compiled.entry_name


def _is(kinds: type | tuple[type, ...]) -> Callable[[Any], bool]:
    """Returns whether a kernel, or the first of a pair with its name, is of a kind."""
    return lambda kernel: isinstance(kernel[0] if _is_pair(kernel) else kernel, kinds)


def _is_pair(kernel: object) -> bool:
    return isinstance(kernel, tuple) and len(kernel) == 2


_SOURCES = (
    _Source("the path of a cubin, or (path, name)", _is((str, os.PathLike)), _of_file),
    _Source("a cubin, or (cubin, name)", _is(bytes), _of_bytes),
    _Source(
        "cuda.core: (ObjectCode, name)",
        lambda kernel: _is_pair(kernel) and is_of(kernel[0], "cuda", "code"),
        _of_object_code,
    ),
    _Source("CuPy: a RawKernel", lambda kernel: is_of(kernel, "cupy", "code", "options"), _of_cupy),
    _Source(
        "Triton: the compiled kernel",
        lambda kernel: is_of(kernel, "triton", "asm", "metadata"),
        _of_triton,
    ),
    _Source(
        "Numba: a compiled function of @cuda.jit, or one of its overloads",
        lambda kernel: (
            is_of(kernel, "numba", "overloads")
            or is_of(kernel, "numba_cuda", "overloads")
            or is_of(kernel, "numba", "_codelibrary")
            or is_of(kernel, "numba_cuda", "_codelibrary")
        ),
        _of_numba,
    ),
)


def cubin_of(kernel: Any) -> tuple[bytes, str]:
    """Returns the cubin of a kernel, and its name there.

    Raises:
        TypeError: no kernel that is known.
        ValueError: not a cubin, or it has no such kernel.
    """
    source = next((source_kind for source_kind in _SOURCES if source_kind.takes(kernel)), None)
    if source is None:
        known = "; ".join(source_kind.name for source_kind in _SOURCES)
        raise TypeError(f"kernel: {shown(kernel)} has no machine code that can be read: {known}")
    cubin, name = source.code(kernel)
    names = _names(cubin)
    if not names:
        raise ValueError(f"{_shown_name(kernel)}: no cubin with a kernel; nvcc -cubin writes one")
    if name is None and len(names) == 1:
        (name,) = names
    if name is None:
        raise ValueError(
            f"{_shown_name(kernel)}: name one of its kernels: {shown(', '.join(names))}"
        )
    if name not in names:
        raise ValueError(
            f"{_shown_name(kernel)}: no kernel {shown(name)}{did_you_mean(name, names)}; it has "
            f"{shown(', '.join(names))}"
        )
    return cubin, name


@contextlib.contextmanager
def naming(kernel: Any) -> Iterator[None]:
    """Names the file of a kernel where its code is refused.

    Raises:
        ValueError: it is.
    """
    try:
        yield
    except ValueError as error:
        name = _shown_name(kernel)
        if name == "kernel" or name in str(error):  # has no file, or is named
            raise
        raise ValueError(f"{name}: {error}") from None


def _shown_name(kernel: Any) -> str:
    """Returns the name of a kernel in messages: the path of its file, if it has one."""
    first = kernel[0] if _is_pair(kernel) else kernel
    return storage.shown(first) if isinstance(first, str | os.PathLike) else "kernel"


def instructions_of(cubin: bytes, name: str) -> tuple[Instruction, ...]:
    """Returns the instructions of a kernel of a cubin.

    Raises:
        ToolMissing: nvdisasm is not there; says how to get it.
        ValueError: there is no such kernel.
    """
    with refusing_torn():
        begin, end = code_of(cubin, name)
    if not begin < end <= len(cubin):
        raise ValueError(
            f"kernel: {shown(name)} has no machine code in the cubin, or not all of it"
        )
    (disassembled,) = disassemble([cubin[begin:end]], f"sm_{architecture_of(cubin)}")
    return disassembled


def _names(cubin: bytes) -> list[str]:
    """Returns the kernels of a cubin: an ELF file has a section for each."""
    if not cubin.startswith(_ELF):
        return []
    with refusing_torn():
        names = [section.name for section in sections(cubin)]
    return [name.removeprefix(_TEXT) for name in names if name.startswith(_TEXT)]
