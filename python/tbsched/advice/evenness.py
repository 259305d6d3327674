"""Whether a launch on an idle GPU must spread evenly over the SMs, whatever chooses them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from tbsched.errors import shown
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence
from tbsched.views import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Evenness(Shown):
    """What :func:`forced_even` found; true where an even spread is guaranteed.

    Attributes:
        forced: whether each SM must get the same number of blocks, or one apart.
        reason: why, or why not, in words.
        blocks: blocks of the launch.
        sms: SMs of the device.
        blocks_per_sm: how many blocks of the launch an idle SM holds.
        limiter: what binds that number (``slots``, ``warps``, ``registers``, ``shared_memory``).

    Example:
        >>> found = tb.forced_even("h200", tb.Launch(blocks=100, threads=1024, registers=64))
        >>> bool(found), found.share, found.blocks_per_sm, found.limiter
        (True, (0, 1), 1, 'registers')
    """

    forced: bool
    reason: str
    blocks: int
    sms: int
    blocks_per_sm: int
    limiter: str

    @property
    def share(self) -> tuple[int, int]:
        """The fewest and the most blocks on an SM if the spread is even."""
        return self.blocks // self.sms, -(-self.blocks // self.sms)

    def __bool__(self) -> bool:
        return self.forced


def forced_even(device: str | os.PathLike[str] | DeviceSpec, launch: Launch) -> Evenness:
    """Whether a launch on an idle GPU is certain to spread evenly over the SMs.

    A spread is even if all SMs have the same number of blocks, or one apart. It is certain if every
    policy spreads the launch so under which no block waits while an SM has room for it. All rows of
    :func:`tbsched.policies` are such policies.

    Let an SM hold at most k blocks of the launch, and let there be S SMs. An even spread is certain
    for these numbers of blocks alone: one; up to S where k is 1; any number on a single SM; k*S;
    and k*S - 1. Any other number is spread unevenly by ``first_fit``. k counts all resources as the
    device's own policy knows them (``round_robin``, ``first_fit`` and ``most_room`` know no
    processing blocks). The blocks of a cluster are on different SMs, but clusters cannot use every
    SM. So clusters are certain only where there is one cluster, or where k is 1.

    A published rule is a special case: two blocks per SM are forced apart if they take more than
    half of the registers (T_2, ``tbsched.papers.published_rules``). It needs two corrections. Any
    resource may be the one that runs out, and three blocks must not fit.

    Args:
        device: a name, the path of a ``.toml`` file, or a spec.
        launch: its ``stream``, ``priority`` and ``duration`` do not matter, as long as
            no block leaves before the last one is placed.

    Raises:
        TypeError, ValueError: not a launch, or one that cannot run on the device; names the
            field, the value and the limit.

    Example:
        >>> tb.forced_even("h200", tb.Launch(blocks=132, threads=1024, registers=64))
        <Evenness: even: an SM holds one block at most>
        >>> tb.forced_even("h200", tb.Launch(blocks=132, threads=256, registers=32)).forced
        False
    """
    spec = _spec(device)
    if not isinstance(launch, Launch):
        raise TypeError(f"launch: a Launch is needed, got {shown(launch)}")
    each, limiter = _capacity(spec, launch)
    forced, reason = _verdict(launch, spec.sms, each)
    return Evenness(forced, reason, launch.blocks, spec.sms, each, limiter)


_spec = device  # forced_even() has a parameter of that name


def _capacity(spec: DeviceSpec, launch: Launch) -> tuple[int, str]:
    """How many blocks an idle SM holds (all SMs hold as many), and what binds that number."""
    one = replace(launch, blocks=launch.cluster, duration=None)
    trace = predict(Sequence([one]), spec)
    assert trace.capacities is not None  # a prediction has them
    (capacity,) = trace.capacities()
    return int(capacity.blocks[0]), capacity.limiter[0]


def _verdict(launch: Launch, sms: int, each: int) -> tuple[bool, str]:
    blocks, holds = launch.blocks, each * sms
    if blocks > holds:
        return False, f"more than one wave, {sms} SMs x {each} blocks"
    if each == 1:
        return True, "an SM holds one block at most"
    if launch.cluster > 1:
        if blocks == launch.cluster:
            return True, "the blocks of one cluster go to different SMs"
        return False, f"an SM holds {each} blocks, and clusters cannot use every SM"
    if sms == 1 or blocks == 1:
        return True, "there is one SM" if sms == 1 else "there is one block"
    if blocks >= holds - 1:
        return True, f"{blocks} blocks fill {sms} SMs x {each}" + (
            "" if blocks == holds else ", one place left"
        )
    return False, f"an SM holds {each} blocks, which leaves room for an uneven spread"
