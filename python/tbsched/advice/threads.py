"""Predictions on several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tbsched.progress import bar

Asked = TypeVar("Asked")
Found = TypeVar("Found")


def each(ask: Callable[[Asked], Found], given: Iterable[Asked], doing: str) -> list[Found]:
    """What is found for each, in their order, with a bar if it takes long.

    The core predicts without Python's lock. Ctrl-C ends it after the predictions under way.
    """
    waiting = list(given)
    found = []
    threads = min(os.cpu_count() or 1, max(1, len(waiting)))
    with ThreadPoolExecutor(threads) as pool, bar(doing, len(waiting)) as advance:
        for one in pool.map(ask, waiting):
            found.append(one)
            advance(len(found))
    return found
