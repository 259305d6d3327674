"""Kernels of Numba: functions of @cuda.jit, or one of their overloads."""

from __future__ import annotations

from typing import Any

from tbsched.errors import shown
from tbsched.launcher.kernels.usage import Library, Usage, is_of

_PACKAGES = ("numba", "numba_cuda")


def _takes(kernel: object) -> bool:
    """Returns whether an object is a kernel of Numba."""
    return any(
        is_of(kernel, package, attribute)
        for package in _PACKAGES
        for attribute in ("overloads", "regs_per_thread")
    )


def _usage(kernel: Any) -> Usage:
    """Returns what a kernel of Numba uses."""
    name = getattr(getattr(kernel, "py_func", None), "__name__", None)
    compiled = _only_overload(kernel, name) if hasattr(kernel, "overloads") else kernel
    return Usage(
        name=name or getattr(compiled, "entry_name", None),
        registers=int(compiled.regs_per_thread),
        static_shared_memory=int(compiled.shared_mem_per_block),
        local_memory=int(compiled.local_mem_per_thread),
    )


def _only_overload(kernel: Any, name: str | None) -> Any:
    """Returns the only compiled overload of a kernel of Numba."""
    compiled = kernel.overloads
    if len(compiled) == 1:
        (only,) = compiled.values()
        return only
    if not compiled:
        raise ValueError(
            f"kernel: {name} is not compiled yet: launch it once, or call its compile(signature)"
        )
    raise ValueError(
        f"kernel: {name} is compiled for {len(compiled)} signatures, "
        f"{shown(', '.join(map(str, compiled)))}: pass one, as {name}.overloads[signature]"
    )


NUMBA = Library("Numba: a function of @cuda.jit, or one of its overloads", _takes, _usage)
