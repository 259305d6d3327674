"""Options of a campaign."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tbsched.campaigns.oracles import Device, OracleLike
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.errors import did_you_mean, shown
from tbsched.hardware.initial_state import InitialState
from tbsched.program.sequence import Sequence

if TYPE_CHECKING:
    from hypothesis import strategies as st

Path_: TypeAlias = "str | os.PathLike[str]"
DRAWS = ("auto", "native", "hypothesis")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOptions:
    """The arguments of :func:`tbsched.fuzz` and :func:`tbsched.campaigns.record`, checked.

    Raises:
        TypeError, ValueError: naming the field, the value and the limit.
    """

    oracle: OracleLike
    predictor: Device
    policy: str | None
    level: str
    limits: Device | None
    initial_state: InitialState | None
    steer: bool
    past_refusal: bool | None
    options: SequenceOptions | None
    without: Collection[str] = ()
    until_full: bool = False
    strategy: st.SearchStrategy[Sequence] | None
    draw: str
    seed: int
    begin: int = 0
    max_examples: int
    max_counterexamples: int | None  # 0: nothing is shrunk
    max_seconds: float | None = None
    shrink_seconds: float = 0.0
    corpus: Path_ | None = None
    record: Path_ | None = None
    repeats: int = 1
    target_fullness: bool = False
    executor: Executor | None = None
    progress: bool

    def __post_init__(self) -> None:
        check_count("max_examples", self.max_examples, 1)
        if self.max_counterexamples is not None:
            check_count("max_counterexamples", self.max_counterexamples, 0)
        check_count("seed", self.seed, 0)
        check_count("begin", self.begin, 0)
        if self.max_seconds is not None:
            _check_seconds("max_seconds", self.max_seconds)
        _check_seconds("shrink_seconds", self.shrink_seconds)
        for name in ("steer", "until_full", "target_fullness", "progress"):
            _check_flag(name, getattr(self, name))
        if self.past_refusal is not None:
            _check_flag("past_refusal", self.past_refusal)
        if not isinstance(self.executor, Executor | None):
            raise TypeError(
                f"executor: a concurrent.futures.Executor is needed, got {shown(self.executor)}"
            )
        if not isinstance(self.initial_state, InitialState | None):
            raise TypeError(
                f"initial_state: an InitialState is needed, got {shown(self.initial_state)}"
            )
        if not isinstance(self.options, SequenceOptions | None):
            raise TypeError(f"options: a SequenceOptions is needed, got {shown(self.options)}")
        SequenceOptions().without(self.without)
        if self.without and not (self.options is None and self.strategy is None):
            raise ValueError(
                f"without: {shown(self.without)} does not go with options or a strategy"
            )
        own_sources = {
            "options": self.options,
            "strategy": self.strategy,
            "past_refusal": self.past_refusal,
        }
        for name, value in own_sources.items():
            if self.until_full and value:
                raise ValueError(f"until_full: does not go with {name}, which it decides")
        if not isinstance(self.draw, str) or self.draw not in DRAWS:
            raise ValueError(
                f"draw: {shown(self.draw)} is not one of {', '.join(DRAWS)}"
                f"{did_you_mean(self.draw, DRAWS)}"
            )


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name}: True or False is needed, got {shown(value)}")


def check_count(name: str, value: object, low: int) -> int:
    """Returns a whole number from a limit on.

    Raises:
        TypeError, ValueError: naming ``name``.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: an integer is needed, got {shown(value)}")
    if value < low:
        raise ValueError(f"{name}: {value} is less than {low}")
    return value


def _check_seconds(name: str, value: object) -> None:
    """Refuses what is no number of seconds from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: seconds are needed, got {shown(value)}")
    if not value >= 0:
        raise ValueError(f"{name}: {value} is less than 0, or no number")
