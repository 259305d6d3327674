"""Interface of drawers, which draw the sequences of a campaign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from tbsched.campaigns.judge import Comparison
from tbsched.campaigns.shrinking.shrinker import Shrinker
from tbsched.campaigns.space.draws import Draw

# Reason why a campaign ended: a value of ``Report.ended``.
Ended: TypeAlias = str
News: TypeAlias = tuple[Draw, Comparison]


class Drawer(Protocol):
    """Draws sequences, has them compared, and counts each as one of the campaign's trials."""

    def until_found(self) -> Ended | None:
        """Draws and compares until a disagreement has shown twice and Hypothesis has shrunk it.

        Another call looks for the next disagreement.

        Returns:
            None: a disagreement was found, and the shrinker has it. Else why the campaign ended.
        """


def shrink_next(next_news: Callable[[], News | None], shrinker: Shrinker) -> bool:
    """Lets Hypothesis shrink the next disagreement that shows again. Returns whether there was
    one.
    """
    while (news := next_news()) is not None:
        draw, comparison = news
        if shrinker.begin(comparison):
            shrinker.from_choices(draw.choices)
            return True
    return False
