"""The numbers of a campaign so far, and the report that is made of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tbsched.campaigns.judge import Comparison
from tbsched.campaigns.results import Counterexample, Lost, Report, Unstable
from tbsched.campaigns.space.coverage import Coverage
from tbsched.errors import DeadlineExceeded, SharedGpu, UnstableMeasurement
from tbsched.program.sequence import Sequence
from tbsched.traces.annotations import Origin

# What is summed where several count.
NUMBERS = (
    "examples", "disagreements", "launches", "blocks", "occupancy", "exact", "replayed",
    "unpredicted", "shrinking",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreed:
    """Sequences that agree, and how many of their launches do at which level."""

    examples: int
    launches: int
    blocks: int
    occupancy: int
    exact: int


@dataclass(slots=True)
class Tally:
    """What has been counted; the fields mean what those of :class:`Report` mean."""

    examples: int = 0
    disagreements: int = 0
    launches: int = 0
    blocks: int = 0
    occupancy: int = 0
    exact: int = 0
    replayed: int = 0
    unpredicted: int = 0
    shrinking: int = 0
    counterexamples: dict[Sequence, Counterexample] = field(default_factory=dict)
    unstable: list[Unstable] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    shared: bool = False  # the oracle gave up because of another process
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Since the campaign began."""
        return time.monotonic() - self.started

    def count(self, comparison: Comparison) -> None:
        """Adds the launches of one comparison; a disagreement is counted as one."""
        for launch, placement in zip(comparison.diff.launches, comparison.observation, strict=True):
            self.launches += 1
            self.blocks += len(placement.smid)
            self.occupancy += launch.occupancy
            self.exact += launch.exact
        self.disagreements += not comparison.agrees

    def count_agreed(self, agreed: Agreed) -> None:
        """Adds the launches of many sequences that agree."""
        self.launches += agreed.launches
        self.blocks += agreed.blocks
        self.occupancy += agreed.occupancy
        self.exact += agreed.exact

    @contextlib.contextmanager
    def counting_unstable(self, sequence: Sequence) -> Iterator[None]:
        """Counts unstable measurements, and suppresses their exceptions."""
        try:
            yield
        except (UnstableMeasurement, DeadlineExceeded) as error:
            self.unstable.append(Unstable(sequence, str(error)))
            self.shared |= isinstance(error, SharedGpu)

    def add(self, other: Tally) -> None:
        """Adds the numbers of a part of the campaign, not its counterexamples."""
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.unstable += other.unstable

    def report(self, origin: Origin, coverage: Coverage, ended: str) -> Report:
        """Returns the numbers, and who was compared."""
        return Report(
            seed=origin.seed,
            predictor=origin.predictor,
            policy=origin.policy,
            level=origin.level,
            **{name: getattr(self, name) for name in NUMBERS},
            counterexamples=tuple(self.counterexamples.values()),
            unstable=tuple(self.unstable),
            seconds=self.seconds,
            coverage=coverage,
            ended=ended,
            lost=tuple(self.lost),
        )
