"""Policies of the caller's own, written in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tbsched.program.arrays import Int32Array

ChooseSm: TypeAlias = Callable[[Int32Array], int]


@dataclass(frozen=True, slots=True)
class Choices:
    """The SM that a Python policy chose for each block, so that a prediction can be replayed.

    Attributes:
        policy: the name of the Python function.
        sms: the SMIDs, in the order of its calls; -1 where it let the block wait.
    """

    policy: str
    sms: list[int] = field(default_factory=list)

    @classmethod
    def by(cls, choose: ChooseSm) -> Choices:
        """Returns the still empty choices of a policy."""
        return cls(getattr(choose, "__name__", type(choose).__name__))

    def recorded(self, choose: ChooseSm) -> ChooseSm:
        """Returns a policy that chooses as ``choose`` does and appends each choice to ``sms``."""

        def choose_and_record(room: Int32Array) -> int:
            """Returns the SMID that the policy chooses, -1: none, and records it."""
            chosen = choose(room)
            self.sms.append(chosen)
            return chosen

        return choose_and_record

    def repeated(self) -> ChooseSm:
        """Returns a policy that makes the recorded choices again, in their order."""
        sms = iter(self.sms)
        return lambda room: next(sms)
