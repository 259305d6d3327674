"""What knows one GPU, and no blocks that meet, refuses the rest by name."""

from __future__ import annotations

from tbsched.program.sequence import Sequence


def one_gpu(owner: str, seq: Sequence) -> None:
    """Refuses a sequence with work of another GPU than the first, or with blocks that meet.

    Raises:
        ValueError: naming the owner, the event or launch, and its value.
    """
    for position, event in enumerate(seq):
        for name in ("gpu", "peer"):
            if getattr(event, name, 0):
                raise ValueError(
                    f"{owner}: Sequence.events[{position}].{name} is {getattr(event, name)}, but "
                    f"{owner} knows one GPU, of index 0"
                )
    for index, launch in enumerate(seq.launches):
        if launch.meets is not None:
            raise ValueError(
                f"{owner}: Launch.meets of launch {index} is {launch.meets!r}, but {owner} does "
                "not know blocks that meet; predict does"
            )
