"""A search for hangs that gives up soon, for tests that ask what is proved to be safe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tbsched.advice.together.ranks import witness


@contextmanager
def few_histories() -> Iterator[None]:
    """Plays a fiftieth of the histories: how many there are changes no answer that is safe."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(witness, "PLAYS", witness.PLAYS // 50)
        yield
