"""The sequences that one campaign may draw."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.launch_tables import SequenceTables
from tbsched.campaigns.space.strategies import sequences_of
from tbsched.program.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Space:
    """A strategy, and what it was made of.

    Attributes:
        strategy: draws the sequences.
        draws: the same sequences, drawn by NumPy; None where a user gave the strategy.
    """

    strategy: st.SearchStrategy[Sequence]
    draws: Draws | None = None

    @classmethod
    def of(cls, draws: Draws) -> Space:
        """Everything that is drawn, whatever the seed."""
        tables = SequenceTables.of(draws.device, draws.options, draws.also)
        return cls(sequences_of(tables, draws.options), draws)

    def of_length(self, launches: int) -> Draws | None:
        """Returns draws of sequences with so many launches; None if the space cannot draw them."""
        if self.draws is None:
            return None
        options = replace(self.draws.options, min_launches=launches, max_launches=launches)
        return replace(self.draws, options=options, begin=0)
