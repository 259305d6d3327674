"""Blocks that follow each other on an SM as one block, for predictions of whole launches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.coarse import blocks_at_once
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.duration import Drawn
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Sequence, with_launches

# A sequence of fewer blocks is predicted in 20 ms as it is.
_FEW_BLOCKS = 2**17
# A merged wave stands for so much of what is left. With half, a launch that gets more SMs later
# still ends evenly (Hummel, Schonberg and Flynn 1992, "Factoring"). Of a kernel of 3.2 ms whose
# blocks take 0 to 40 us, the predicted end was 0.1 us off; with 0.6 10 us, with 2 / 3 106 us.
_MERGED_SHARE = 1 / 2
_FEW_WAVES = 4


def merged(sequence: Sequence, spec: DeviceSpec) -> Sequence:
    """Returns a sequence of fewer blocks in which each launch starts and ends when it would.

    Of 24 waves the first 12 become one, the next 6, the next 3, and the last three stay. A block of
    the first merged wave runs as long as 12 blocks that follow each other. A launch of a few waves
    stays as it is. So does one that a more urgent launch might interrupt between two blocks, and
    one of which more is known than how long its blocks run.
    """
    launches = sequence.launches
    # Blocks of one duration leave in whole waves, which is as quick, until others disturb that.
    are_even = all(isinstance(launch.duration, float) for launch in launches)
    if are_even or sum(launch.blocks for launch in launches) <= _FEW_BLOCKS:
        return sequence
    most_urgent = min(launch.priority for launch in launches)
    launches_ = [
        _with_merged_blocks(launch, spec) if launch.priority == most_urgent else launch
        for launch in launches
    ]
    return with_launches(sequence, launches_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merged(Drawn):
    """Durations of blocks that stand for several of a launch.

    Attributes:
        launch: as it is.
        wave: how many of its blocks begin together.
        first: of each merged wave, the first one that it stands for, int64.
        pause: seconds from the end of a block to the start of the next one.
    """

    launch: Launch
    wave: int
    first: tuple[int, ...]
    pause: float

    def draw(self, blocks: int) -> Float64Array:
        """Returns durations in s: the sums of merged blocks, then those of the last wave."""
        durations = self.launch.block_durations()
        assert durations is not None
        whole = len(durations) // self.wave * self.wave
        rows = durations[:whole].reshape(-1, self.wave)
        first: Int64Array = np.array(self.first, np.int64)
        pauses = self.pause * (np.diff(first, append=len(rows)) - 1)
        together = np.add.reduceat(rows, first, axis=0) + pauses[:, None]
        return np.concatenate([together.ravel(), durations[whole:]])


def _with_merged_blocks(launch: Launch, spec: DeviceSpec) -> Launch:
    """Returns a launch with fewer and longer blocks; the same one if it must stay as it is."""
    given = launch.duration
    is_plain = not (launch.cooperative or launch.programmatic or launch.trigger is not None)
    if given is None or given == 0 or isinstance(given, tuple) or not is_plain:
        return launch
    if launch.memory_wait is not None:
        return launch
    wave = blocks_at_once(spec, launch) // launch.cluster * launch.cluster
    waves, rest = divmod(launch.blocks, wave)
    if waves < _FEW_WAVES:
        return launch
    first, left = [], waves
    while left:
        first.append(waves - left)
        left -= max(1, int(_MERGED_SHARE * left))
    mean = given.mean if isinstance(given, Drawn) else given
    pause = spec.exit_latency_ns / 1e9
    return replace(
        launch,
        blocks=len(first) * wave + rest,
        duration=_Merged(
            "uniform", mean, launch=launch, wave=wave, first=tuple(first), pause=pause
        ),
    )
