"""What a block of a kernel needs of what SMs share, and files of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from tbsched import _core, storage
from tbsched.errors import shown
from tbsched.program.checks import instance, integer, items
from tbsched.program.sequence import Launch

INSIDE: tuple[str, ...] = _core.INSIDE_RESOURCES
RESOURCES: tuple[str, ...] = (*INSIDE, *_core.OUTSIDE_RESOURCES)
_VERSION = 1
_KEY = "tbsched_profiles"


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """What one block of a kernel needs of what SMs share.

    :func:`tbsched.sm.load_ncu` makes it of what Nsight Compute measured of the kernel alone.
    :func:`tbsched.predict` takes it, and says how kernels slow each other.

    Attributes:
        name: the ``name`` of the launches that it is of.
        work: of each resource, for how many seconds one block takes up all that an SM has. For
            ``"l2"`` and ``"dram"`` an SM has an even share of the GPU's.
        memory_wait: for how many seconds a block waits for memory when it runs alone.
        far: the part of these that it waits for DRAM, 0 to 1.
        blocks: of the launch that was measured.

    Raises:
        TypeError, ValueError: an unknown resource, or a number out of its range.

    Example:
        >>> profile = tb.sm.KernelProfile("add", {"dram": 2e-5}, memory_wait=3e-5, far=0.9)
        >>> profile.work["dram"]
        2e-05
    """

    name: str
    work: Mapping[str, float]
    memory_wait: float = 0.0
    far: float = 0.0
    blocks: int = 1

    def __post_init__(self) -> None:
        instance("KernelProfile", "name", self.name, str)
        for resource, seconds in dict(self.work).items():
            if resource not in RESOURCES:
                known = ", ".join(RESOURCES)
                raise ValueError(f"KernelProfile.work: {shown(resource)} is none of {known}")
            _check(f"work: {resource}", seconds, 1e9)
        _check("memory_wait", self.memory_wait, 1e9)
        _check("far", self.far, 1.0)
        integer("KernelProfile", "blocks", self.blocks, 1, 2**31 - 1)

    def scaled(self, blocks: int) -> KernelProfile:
        """The profile of a launch that does the same work in another number of blocks.

        Args:
            blocks: of the grid, for kernels that go through their work with any.

        Raises:
            TypeError, ValueError: a number out of its range.

        Example:
            >>> tb.sm.KernelProfile("add", {"dram": 2e-5}, blocks=264).scaled(132).work["dram"]
            4e-05
        """
        blocks = integer("scaled", "blocks", blocks, 1, 2**31 - 1)
        more = self.blocks / blocks
        work = {resource: seconds * more for resource, seconds in self.work.items()}
        return replace(self, work=work, memory_wait=self.memory_wait * more, blocks=blocks)


def profile_for(
    launch: Launch, number: int, profiles: Mapping[str, KernelProfile]
) -> KernelProfile:
    """The profile of a launch, by its name.

    Raises:
        TypeError, ValueError: there is none, or something else.
    """
    if launch.name is None or launch.name not in profiles:
        whose = "has no name" if launch.name is None else f"is called {shown(launch.name)}"
        raise ValueError(f"profiles: launch {number} {whose}, and there is no profile of it")
    return instance("profiles", shown(launch.name), profiles[launch.name], KernelProfile)


def _check(name: str, value: object, most: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"KernelProfile.{name}: a number is needed, got {shown(value)}")
    if not 0 <= value <= most:
        raise ValueError(f"KernelProfile.{name}: {shown(value)} is outside 0..{most:g}")


def save_profiles(profiles: Iterable[KernelProfile], path: str | os.PathLike[str]) -> None:
    """Writes profiles as a JSON file.

    Args:
        profiles: of different kernels.
        path: the file; what is there is replaced.

    Raises:
        TypeError: not profiles.

    Example:
        >>> tb.sm.save_profiles([profile], "profiles.json")  # doctest: +SKIP
    """
    rows = []
    for each in items("save_profiles", "profiles", profiles):
        instance("save_profiles", "profiles", each, KernelProfile)
        rows.append(asdict(each))
    text = json.dumps({_KEY: _VERSION, "profiles": rows}, indent=1)
    with storage.replacing(storage.as_path(path)) as file:
        file.write(text.encode() + b"\n")


def load_profiles(path: str | os.PathLike[str]) -> tuple[KernelProfile, ...]:
    """Reads what :func:`save_profiles` wrote.

    Args:
        path: the file.

    Returns:
        The profiles, in the order in which they were written.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file of something else, or of a later version.

    Example:
        >>> profiles = tb.sm.load_profiles("profiles.json")  # doctest: +SKIP
    """
    where = storage.as_path(path)
    try:
        found = json.loads(storage.content(where))
        version = found[_KEY]
        if version != _VERSION:
            raise ValueError(f"version {version} of profiles is not known, but {_VERSION} is")
        return tuple(KernelProfile(**row) for row in found["profiles"])
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{storage.shown(where)}: no file of profiles: {error}") from None
