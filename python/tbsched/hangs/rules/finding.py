"""What a rule finds in the evidence."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.hangs.hang import HangFix, NeverStarts


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule finds.

    Attributes:
        kind: of the hang, as of ``HangReport.kind``; None: no answer, and the next rule is asked.
        may_be: the kinds that fit, if ``kind`` is ``not_known``.
        reason: in a sentence.
        stranded: the launches that never start.
        fixes: what to change.
        proof: sentences that show it. They count also if there is no answer.
        unseen: sentences about what could not be seen. They count likewise.
    """

    kind: str | None = None
    may_be: tuple[str, ...] = ()
    reason: str = ""
    stranded: tuple[NeverStarts, ...] = ()
    fixes: tuple[HangFix, ...] = ()
    proof: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


NOTHING = Finding()
