"""Which launches of a sequence slow each other, as the core takes it."""

from __future__ import annotations

from collections.abc import Mapping

from tbsched.errors import shown
from tbsched.prediction.neighbours.profiles import KernelProfile
from tbsched.program.checks import instance
from tbsched.program.sequence import Sequence

MEASURED = "measured"
Neighbours = tuple[list[tuple[list[float], float]], list[int]]


def neighbours_of(
    seq: Sequence, interference: str | None, profiles: Mapping[str, KernelProfile] | None
) -> Neighbours | None:
    """Of each kernel its needs, and of each launch its kernel or -1; None: nobody slows anybody.

    Raises:
        TypeError, ValueError: an unknown way; profiles without it, or it without profiles; a
            launch without a profile; a sequence of which it is not known.
    """
    if interference is None:
        if profiles is not None:
            raise ValueError(f'profiles: they need interference="{MEASURED}"')
        return None
    if interference != MEASURED:
        raise ValueError(f'interference: {shown(interference)} is neither None nor "{MEASURED}"')
    if profiles is None:
        raise ValueError("profiles: interference needs one for each named launch")
    if not seq.timed:
        raise ValueError("interference: it needs launches with durations")
    launches = seq.launches
    if any(launch.programmatic or launch.trigger is not None for launch in launches):
        raise ValueError("interference: of programmatic launches and triggers it is not known")
    known = {
        name: instance("predict", f"profiles[{shown(name)}]", profile, KernelProfile)
        for name, profile in profiles.items()
    }
    numbers = {name: number for number, name in enumerate(known)}
    for number, launch in enumerate(launches):
        if launch.name not in numbers:
            raise ValueError(
                f"profiles: launch {number} is called {shown(launch.name)}, of which there is none"
            )
    return [profile.row() for profile in known.values()], [
        numbers[launch.name] for launch in launches
    ]
