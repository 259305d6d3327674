"""The 128 bits of an instruction since Volta: which bits are registers, and how it is issued.

NVIDIA documents none of it. Each field was found by comparing what ptxas wrote with what nvdisasm
reads, and every patched loop is read back by nvdisasm before it is used (:mod:`.loops`).
"""

from __future__ import annotations

from dataclasses import dataclass

BYTES = 16
MOST_STALL = 15
SCOREBOARDS = 6
NO_SCOREBOARD = 7
ALL_SCOREBOARDS = (1 << SCOREBOARDS) - 1
NOP = 0x7918  # without its control fields
PATIENT = 2  # ptxas lets the warp go on after so short a stall, and yields after a longer one


@dataclass(frozen=True, slots=True)
class Field:
    """Some bits of an instruction."""

    at: int
    bits: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1 << self.at

    def of(self, word: int) -> int:
        """Its value."""
        return (word & self.mask) >> self.at

    def set(self, word: int, value: int) -> int:
        """Returns the instruction with another value.

        Raises:
            ValueError: the value does not fit.
        """
        if not 0 <= value < 1 << self.bits:
            raise ValueError(f"field: {value} is outside 0..{(1 << self.bits) - 1}")
        return word & ~self.mask | value << self.at


DESTINATION = Field(16, 8)
SOURCES = (Field(24, 8), Field(32, 8), Field(64, 8))
STALL = Field(105, 4)  # clocks until the warp's next instruction may go
STAYS = Field(109, 1)  # the scheduler would rather go on with this warp
WRITES = Field(110, 3)  # the scoreboard that tells that the result is there
READS = Field(113, 3)  # the scoreboard that tells that the operands have been read
WAITS = Field(116, 6)  # the scoreboards that it waits for
REUSE = Field(122, 4)  # operands that stay in the reuse cache


@dataclass(frozen=True, slots=True)
class Control:
    """How an instruction is issued."""

    stall: int
    writes: int = NO_SCOREBOARD
    reads: int = NO_SCOREBOARD
    waits: int = 0
    reuse: int = 0

    @classmethod
    def of(cls, word: int) -> Control:
        """Returns the control fields of an instruction."""
        return cls(STALL.of(word), WRITES.of(word), READS.of(word), WAITS.of(word), REUSE.of(word))

    def on(self, word: int) -> int:
        """Returns the instruction with these control fields."""
        for field, value in (
            (STALL, self.stall),
            (STAYS, int(self.stall <= PATIENT)),
            (WRITES, self.writes),
            (READS, self.reads),
            (WAITS, self.waits),
            (REUSE, self.reuse),
        ):
            word = field.set(word, value)
        return word


ISSUE = (STALL, STAYS, WRITES, READS, WAITS, REUSE)
