"""What a compiled kernel uses, whatever compiled it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a kernel uses; sizes in bytes.

    Attributes:
        name: of the kernel.
        registers: per thread.
        static_shared_memory: per block, without what the driver reserves.
        dynamic_shared_memory: per block, where it is fixed when the kernel is compiled.
        local_memory: per thread.
        threads: of a block, where they are fixed when the kernel is compiled.
        cluster: blocks of a cluster.
        carveout: percent, as asked for; None: the driver chooses.
    """

    name: str | None
    registers: int
    static_shared_memory: int
    local_memory: int
    dynamic_shared_memory: int = 0
    threads: int | None = None
    cluster: int = 1
    carveout: int | None = None


@dataclass(frozen=True, slots=True)
class Library:
    """A library whose kernels are known.

    Attributes:
        name: what it is called, with what it calls its kernels.
        takes: whether an object is a kernel of it; imports nothing.
        usage: what the kernel uses.
    """

    name: str
    takes: Callable[[Any], bool]
    usage: Callable[[Any], Usage]


def is_of(kernel: object, package: str, *attributes: str) -> bool:
    """Returns whether the type of an object, or a base of it, comes from a package, and has these
    attributes."""
    modules = (f"{base.__module__}." for base in type(kernel).__mro__)
    known = any(module.startswith(f"{package}.") for module in modules)
    return known and all(
        hasattr(type(kernel), name) or name in _own_attributes(kernel) for name in attributes
    )


def _own_attributes(kernel: object) -> dict[str, object]:
    return getattr(kernel, "__dict__", {})


def carveout_of(carveout: int) -> int | None:
    """Returns a carveout as CUDA has it, where -1 leaves it to the driver."""
    return None if carveout < 0 else carveout
