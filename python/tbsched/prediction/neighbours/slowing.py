"""Which launches of a sequence slow each other, as the core takes it."""

from __future__ import annotations

from collections.abc import Mapping

from tbsched.errors import shown
from tbsched.prediction.neighbours.profiles import KernelProfile, Row, profile_for
from tbsched.program.sequence import Sequence

MEASURED = "measured"
Neighbours = tuple[list[Row], list[int]]


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
    numbers: dict[str, int] = {}
    rows: list[Row] = []
    of_launch = []
    for number, launch in enumerate(launches):
        profile = profile_for(launch, number, profiles)
        name = str(launch.name)
        if name not in numbers:
            numbers[name] = len(rows)
            rows.append(profile.row())
        of_launch.append(numbers[name])
    return rows, of_launch
