"""Which launches of a sequence slow each other, as the core takes it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tbsched.errors import shown
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.neighbours.profiles import INSIDE, RESOURCES, KernelProfile, profile_for
from tbsched.program.sequence import Launch, Sequence

MEASURED = "measured"
# For a launch at its pace alone: its shares of each resource, and its waits.
Row = tuple[list[float], list[float]]
Neighbours = list[Row]

_WARP = 32
_MAX_MEMORY_SHARE = 0.9  # largest share of its time that a block waits for memory


def neighbours_of(
    seq: Sequence,
    spec: DeviceSpec,
    interference: str | None,
    profiles: Mapping[str, KernelProfile] | None,
) -> Neighbours | None:
    """Returns each launch's demand for shared resources; None: launches do not slow each other.

    Raises:
        TypeError, ValueError: an unknown way; profiles without it, or it without profiles; a
            launch without a profile; a sequence of which it is not known.
    """
    if interference is None:
        if profiles is not None:
            raise ValueError(f'profiles: they need interference="{MEASURED}"')
        return None
    if not isinstance(interference, str) or interference != MEASURED:
        raise ValueError(f'interference: {shown(interference)} is neither None nor "{MEASURED}"')
    if profiles is None:
        raise ValueError("profiles: interference needs one for the name of each launch")
    if not seq.timed:
        raise ValueError("interference: it needs launches with durations")
    launches = seq.launches
    if any(launch.programmatic or launch.trigger is not None for launch in launches):
        raise ValueError("interference: of programmatic launches and triggers it is not known")
    if any(launch.meets is not None for launch in launches):
        raise ValueError("interference: of launches that meet others it is not known")
    return [
        demand_of(profile_for(launch, number, profiles), launch, spec)
        for number, launch in enumerate(launches)
    ]


def demand_of(profile: KernelProfile, launch: Launch, spec: DeviceSpec) -> Row:
    """Returns the shares of resources that a launch's block needs, and its waits."""
    durations = launch.block_durations()
    assert durations is not None
    seconds = float(np.mean(durations))
    if not seconds:
        return [0.0] * len(RESOURCES), [0.0] * len(RESOURCES)
    shares = [profile.work.get(name, 0.0) / seconds for name in RESOURCES]
    # Each processing block serves one of its warps at a time.
    warps = max(1.0, launch.threads / _WARP / spec.processing_blocks)
    waits = [share / warps for share in shares[: len(INSIDE)]]
    memory = min(profile.memory_wait / seconds, _MAX_MEMORY_SHARE)
    return shares, [*waits, memory / (1 + profile.far), memory * profile.far / (1 + profile.far)]
