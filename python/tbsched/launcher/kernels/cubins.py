"""Kernels of cubins: the path of a file, or a pair of it and a name. Needs no GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from tbsched import storage
from tbsched.errors import did_you_mean, shown
from tbsched.launcher.kernels.usage import Library, Usage

_Named: TypeAlias = str | os.PathLike[str]


def _takes(kernel: object) -> bool:
    path = kernel[0] if isinstance(kernel, tuple) and len(kernel) == 2 else kernel
    return isinstance(path, str | os.PathLike)


def _usage(kernel: _Named | tuple[_Named, str]) -> Usage:
    cubin_path, name = kernel if isinstance(kernel, tuple) else (kernel, None)
    path = storage.as_path(cubin_path)
    return usage_in(storage.content(path), name, path)


def usage_in(image: bytes, name: str | None, path: Path) -> Usage:
    """Returns the resources of a cubin's kernel; a ``name`` of None: its only one.

    Raises:
        ImportError: the package was built without nvcc.
        ValueError: not a cubin, or it has no such kernel.
    """
    kernels = {row[0]: row[1:] for row in _read(image, path)}
    if name is None and len(kernels) == 1:
        (name,) = kernels
    if name not in kernels:
        hint = did_you_mean(name, kernels) if isinstance(name, str) else ""
        raise ValueError(
            f"{storage.shown(path)}: no kernel {shown(name)}{hint}; it has "
            f"{shown(', '.join(kernels))}: name one, as (path, name)"
        )
    registers, static_shared_memory, local_memory, cluster = kernels[name]
    return Usage(
        name=name,
        registers=registers,
        static_shared_memory=static_shared_memory,
        local_memory=local_memory,
        cluster=cluster or 1,
    )


def _read(image: bytes, path: Path) -> list[tuple[str, int, int, int, int]]:
    """Returns the kernels of a cubin, each with its name and what a thread or block uses."""
    try:
        from tbsched import _launcher
    except ImportError:
        raise ImportError(
            "launch_of: reading cubins needs the launcher, and this tbsched was built without nvcc"
        ) from None
    try:
        return _launcher.usage(image)
    except ValueError as error:
        raise ValueError(
            f"{storage.shown(path)}: {error}; nvcc -cubin writes one, and cuobjdump -xelf takes "
            "those out of a program"
        ) from None


CUBINS = Library("the path of a cubin, or (path, name)", _takes, _usage)
