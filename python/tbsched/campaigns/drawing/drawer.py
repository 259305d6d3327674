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
        """Draws until a disagreement has been seen twice and Hypothesis has shrunk it.

        The next call goes on behind it.

        Returns:
            None, the shrinker having more to do; or why nothing more is drawn.
        """


def shrink_next(next_news: Callable[[], News | None], shrinker: Shrinker) -> bool:
    """Lets Hypothesis shrink the next disagreement that shows again; False: there is none."""
    while (news := next_news()) is not None:
        draw, comparison = news
        if shrinker.begin(comparison):
            shrinker.from_choices(draw.choices)
            return True
    return False
