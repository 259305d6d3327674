"""Fixes, and the problems that they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tbsched.advice.together.deciding import proved
from tbsched.advice.together.given import Groups, Pairs
from tbsched.advice.together.problem import Problem, Stranding
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch, Sequence


@dataclass(frozen=True, slots=True)
class Fix:
    """A change after which the launches are sure to be resident together.

    Attributes:
        kind: ``order``, ``streams``, ``loading``, ``carveout``, ``partition``, ``grid``,
            ``registers``, ``cooperative`` or ``set_up``.
        text: what to do.
        launches: all launches, changed.
        after: pairs of which the second launch must wait until the first is resident whole.
        groups: which of them must be resident together, as before.
        device: the device with what the fix sets up; None where it is the same as before.
        sequence: the changed program, if it does more than launch.

    Example:
        >>> full = [tb.Launch(132, 1024, 32, name="a"), tb.Launch(140, 1024, 32, name="b")]
        >>> for fix in tb.coresident(full, "h200").fixes:
        ...     print(fix.kind, "|", fix.text)
        grid | at most 132 blocks for b, not 140
    """

    kind: str
    text: str
    launches: tuple[Launch, ...]
    after: Pairs
    groups: Groups
    device: DeviceSpec | None = None
    sequence: Sequence | None = None


@dataclass(frozen=True, slots=True)
class Unproved:
    """A problem that is not proved to be safe, with its witness if one is known."""

    problem: Problem
    stranding: Stranding | None

    def changed(self, kind: str, text: str, changes: dict[int, Launch]) -> Fix:
        """Returns a fix that replaces some launches."""
        before = self.problem.launches
        launches = tuple([changes.get(number, launch) for number, launch in enumerate(before)])
        return Fix(kind, text, launches, self.problem.after, self.problem.groups)

    def solved_by(self, changed: Problem) -> bool:
        """Returns whether a changed problem is proved safe."""
        return proved(changed, self.stranding)


def each_and_all(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Yields each launch alone, then all of them; nothing, if there are none."""
    all_numbers = list(numbers)
    yield from ([number] for number in all_numbers)
    if all_numbers:
        yield all_numbers


def fixed(problem: Problem, fix: Fix) -> Problem:
    """Returns the problem with a fix applied."""
    return replace(
        problem, launches=fix.launches, after=fix.after, groups=fix.groups,
        spec=fix.device or problem.spec, around=fix.sequence or problem.around,
    )  # fmt: skip
