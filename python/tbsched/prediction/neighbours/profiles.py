"""Demand of a kernel's blocks for the shared resources of SMs, and files of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace

from tbsched import _core, parsing, storage
from tbsched.errors import did_you_mean, shown
from tbsched.program.checks import instance, integer, items, known_fields
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
        if not isinstance(self.work, Mapping):
            needed = "seconds by resource are needed"
            raise TypeError(f"KernelProfile.work: {needed}, got {shown(self.work)}")
        for resource, seconds in self.work.items():
            if resource not in RESOURCES:
                hint = f"{', '.join(RESOURCES)}{did_you_mean(resource, RESOURCES)}"
                raise ValueError(f"KernelProfile.work: {shown(resource)} is none of {hint}")
            _check(f"work: {resource}", seconds, 1e9)
        _check("memory_wait", self.memory_wait, 1e9)
        _check("far", self.far, 1.0)
        integer("KernelProfile", "blocks", self.blocks, 1, 2**31 - 1)

    def scaled(self, blocks: int) -> KernelProfile:
        """Returns the profile of a launch that does the same work in another number of blocks.

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
    """Returns the profile of a launch, by its name. Raises TypeError or ValueError: there is none,
    or something else."""
    if not isinstance(profiles, Mapping):
        raise TypeError(
            "profiles: a profile for the name of each launch is needed, such as "
            f"{{p.name: p for p in profiles}}, got {shown(profiles)}"
        )
    if launch.name is None:
        raise ValueError(f"profiles: launch {number} has no name=, by which its profile is found")
    if launch.name not in profiles:
        raise ValueError(
            f"profiles: launch {number} is called {shown(launch.name)}, which is none of "
            f"{shown(list(profiles))}{did_you_mean(launch.name, profiles)}"
        )
    return instance("profiles", shown(launch.name), profiles[launch.name], KernelProfile)


def _check(name: str, value: object, most: float) -> None:
    """Checks a number of a profile: 0 to ``most``."""
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
    for profile in items("save_profiles", "profiles", profiles):
        instance("save_profiles", "profiles", profile, KernelProfile)
        rows.append(asdict(profile))
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
    content = storage.content(where)
    try:
        keys = (_KEY, "profiles")
        found = known_fields("file", parsing.json_value(content), keys, keys)
        if found[_KEY] != _VERSION:
            raise ValueError(f"{_KEY}: {shown(found[_KEY])} is not known, only {_VERSION}")
        rows = enumerate(items("file", "profiles", found["profiles"]))
        names = [field.name for field in fields(KernelProfile)]
        return tuple(
            KernelProfile(**known_fields(f"profiles[{number}]", row, names, ("name", "work")))
            for number, row in rows
        )
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{storage.shown(where)}: no file that tb.sm.save_profiles writes: {error}"
        ) from None
