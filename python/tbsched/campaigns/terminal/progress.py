"""What a running campaign shows on standard error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from tbsched.campaigns.tally import Tally

_REFRESH_SECONDS = 0.1


class Progress:
    """Progress of a quiet campaign: shows nothing."""

    def update(self, tally: Tally, doing: str) -> None:
        """Shows the tally, at most a few times per second."""

    def say(self, text: str) -> None:
        """Shows a message that stays."""


class _Bar(Progress):
    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        options: dict[str, Any] = {}
        if Console().is_jupyter and not find_spec("ipywidgets"):
            # rich would warn of them; drawn as in a terminal, a bar would stay there line by line.
            options = {"force_jupyter": False, "force_terminal": False}
        self.bar = Bar(
            TextColumn("{task.description:<7}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TextColumn("{task.fields[launches]:,} launches"),
            TextColumn("{task.fields[disagreements]:,} disagree"),
            TimeElapsedColumn(),
            console=Console(stderr=True, highlight=False, soft_wrap=True, **options),
            transient=True,
        )
        self._task = self.bar.add_task("fuzz", total=total, rate=0.0, launches=0, disagreements=0)
        self._started = self._shown = time.monotonic()

    def update(self, tally: Tally, doing: str) -> None:
        """Shows what has been counted, and what is being done."""
        now = time.monotonic()
        if now - self._shown < _REFRESH_SECONDS:
            return
        self._shown = now
        self.bar.update(
            self._task,
            completed=tally.examples,
            description=doing,
            rate=tally.examples / (now - self._started),
            launches=tally.launches,
            disagreements=tally.disagreements,
        )

    def say(self, text: str) -> None:
        self.bar.console.print(text, markup=False)


@contextlib.contextmanager
def shown(progress: bool, total: int) -> Iterator[Progress]:
    """Yields a progress bar, or one that shows nothing."""
    if not progress:
        yield Progress()
        return
    bar = _Bar(total)
    with bar.bar:
        yield bar
