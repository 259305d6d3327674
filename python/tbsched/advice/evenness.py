"""Whether a launch on an idle GPU must spread evenly over the SMs, whatever chooses them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from tbsched.errors import shown
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.recorded import held
from tbsched.program.sequence import Launch, Sequence
from tbsched.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Evenness(Shown):
    """What :func:`forced_even` found; true where an even spread is guaranteed.

    Attributes:
        forced: whether the numbers of blocks on two SMs are certain to differ by one at most.
        reason: why, or why not, in words.
        blocks: blocks of the launch.
        sms: SMs of the device.
        blocks_per_sm: how many blocks of the launch an idle SM holds.
        limiter: what limits that number (``slots``, ``warps``, ``registers``, ``shared_memory``).

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
    """Returns whether a launch on an idle GPU is certain to spread evenly over the SMs.

    A spread is even if the numbers of blocks on any two SMs differ by one at most. It is certain if
    it follows from the resources alone: every policy leads to it that lets no block wait while an
    SM has room. All policies of :func:`tbsched.policies` are of this kind.

    Let there be S SMs, and let an SM hold at most k blocks of the launch. In one wave, at most k*S
    blocks, an even spread is certain in these cases only:

    - k is 1, or S is 1;
    - the launch has one block, or k*S - 1, or k*S;
    - the launch is one cluster, because the blocks of a cluster go to different SMs.

    Without clusters, ``first_fit`` spreads any other number of blocks up to k*S unevenly. Several
    clusters are certain only where k is 1, because clusters cannot use every SM. k counts all
    resources that the device's own policy knows (``round_robin``, ``first_fit`` and ``most_room``
    know no processing blocks and no shared-memory configurations).

    A published rule is about launches of two blocks per SM: they spread evenly if two blocks take
    more than half of the registers (T_2, ``tbsched.papers.published_rules``). It needs two
    corrections. Any resource may be the one that runs out, and three blocks must not fit.

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
    per_sm, limiter = _capacity(spec, launch)
    forced, reason = _verdict(launch, spec.sms, per_sm)
    return Evenness(forced, reason, launch.blocks, spec.sms, per_sm, limiter)


_spec = device  # forced_even() has a parameter of that name


def _capacity(spec: DeviceSpec, launch: Launch) -> tuple[int, str]:
    """Returns the number of blocks that an idle SM holds, and which limit binds."""
    single = replace(held(launch), blocks=launch.cluster)
    trace = predict(Sequence([single]), spec)
    assert trace.capacities is not None  # a prediction has them
    (capacity,) = trace.capacities()
    return int(capacity.blocks[0]), capacity.limiter[0]


def _verdict(launch: Launch, sms: int, per_sm: int) -> tuple[bool, str]:
    """Returns whether the blocks surely spread evenly, and why, in words."""
    blocks, capacity = launch.blocks, per_sm * sms
    if blocks > capacity:
        return False, f"more than one wave, {sms} SMs x {per_sm} blocks"
    if per_sm == 1:
        return True, "an SM holds one block at most"
    if launch.cluster > 1:
        if blocks == launch.cluster:
            return True, "the blocks of one cluster go to different SMs"
        return False, f"an SM holds {per_sm} blocks, and clusters cannot use every SM"
    if sms == 1 or blocks == 1:
        return True, "there is one SM" if sms == 1 else "there is one block"
    if blocks >= capacity - 1:
        return True, f"{blocks} blocks fill {sms} SMs x {per_sm}" + (
            "" if blocks == capacity else ", one place left"
        )
    return False, f"an SM holds {per_sm} blocks, which leaves room for an uneven spread"
