"""Policies of the caller's own, written in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tbsched.program.arrays import Int32Array

ChooseSm: TypeAlias = Callable[[Int32Array], int]


@dataclass(frozen=True, slots=True)
class Choices:
    """What a policy chose for one block after the other, so that a prediction can be replayed.

    Attributes:
        policy: its name.
        sms: SMIDs, and -1 where it chose none.
    """

    policy: str
    sms: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, choose: ChooseSm) -> Choices:
        """Returns those of a policy that has not been asked."""
        return cls(getattr(choose, "__name__", type(choose).__name__))

    def recorded(self, choose: ChooseSm) -> ChooseSm:
        """Returns the policy, which then adds to these what it chooses."""

        def ask(room: Int32Array) -> int:
            chosen = choose(room)
            self.sms.append(chosen)
            return chosen

        return ask

    def again(self) -> ChooseSm:
        """Returns a policy that chooses the same."""
        sms = iter(self.sms)
        return lambda room: next(sms)
