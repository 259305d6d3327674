"""What a block of a kernel needs of what SMs share, and files of it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from tbsched import _core, storage
from tbsched.errors import shown
from tbsched.program.checks import instance, items
from tbsched.program.sequence import Launch

RESOURCES: tuple[str, ...] = (*_core.INSIDE_RESOURCES, *_core.OUTSIDE_RESOURCES)
Row = tuple[list[float], float]  # as the core takes it
_VERSION = 1
_KEY = "tbsched_profiles"


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """What one block of a kernel needs of what SMs share.

    :func:`tbsched.sm.profile` measures it. :func:`tbsched.predict` takes it, and says how kernels
    slow each other.

    Attributes:
        name: the ``name`` of the launches that it is of.
        shares: of each resource, the part of what an SM has that one block takes up while nothing
            slows it down. For ``"l2"`` and ``"dram"`` an SM has an even share of the GPU's.
        depth: how many requests of a block wait at the same time.
        error: of the measured slowdowns, the median distance from what the profile says; 0.05 is
            5 %. None: it was not measured.

    Raises:
        TypeError, ValueError: an unknown resource, or a number out of its range.

    Example:
        >>> profile = tb.sm.KernelProfile("add", {"dram": 0.5}, depth=8.0)
        >>> profile.shares["dram"]
        0.5
    """

    name: str
    shares: Mapping[str, float]
    depth: float = 1.0
    error: float | None = None

    def __post_init__(self) -> None:
        instance("KernelProfile", "name", self.name, str)
        for resource, share in dict(self.shares).items():
            if resource not in RESOURCES:
                known = ", ".join(RESOURCES)
                raise ValueError(f"shares: {shown(resource)} is none of {known}")
            _check(f"shares: {resource}", share, 0.0)
        _check("depth", self.depth, 1e-3)

    def row(self) -> Row:
        """As the core takes it."""
        return [float(self.shares.get(name, 0.0)) for name in RESOURCES], float(self.depth)


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


def _check(name: str, value: object, least: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name}: a number is needed, got {shown(value)}")
    if not math.isfinite(value) or not least <= value <= 1e6:
        raise ValueError(f"{name}: {value} is outside {least}..1e6")


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


def load_profiles(path: str | os.PathLike[str]) -> dict[str, KernelProfile]:
    """Reads what :func:`save_profiles` wrote.

    Args:
        path: the file.

    Returns:
        Profiles by name, as :func:`tbsched.predict` takes them.

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
        profiles = [KernelProfile(**row) for row in found["profiles"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{storage.shown(where)}: no file of profiles: {error}") from None
    return {profile.name: profile for profile in profiles}
