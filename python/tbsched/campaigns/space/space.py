"""The sequences that one campaign may draw."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.campaigns.space.strategies import sequences
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Space:
    """A strategy, and what it was made of.

    Attributes:
        strategy: draws the sequences.
        made_of: the device that they fit, and the options; None where a user gave the strategy.
    """

    strategy: st.SearchStrategy[Sequence]
    made_of: tuple[DeviceSpec, SequenceOptions] | None = None

    @classmethod
    def of(cls, device: DeviceSpec, options: SequenceOptions) -> Space:
        """Everything that the options let a device run."""
        return cls(sequences(device, options), (device, options))

    def of_length(self, launches: int, seed: int) -> Draws | None:
        """Only those of so many launches; None where nobody knows how to draw them."""
        if self.made_of is None:
            return None
        device, options = self.made_of
        only = replace(options, min_launches=launches, max_launches=launches)
        return Draws(device, only, seed)
