"""Sequences as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.program.sequence import Sequence, events_to_data


def sequence_data(sequence: Sequence) -> dict[str, Any]:
    """The events as trace files hold them."""
    return {"events": events_to_data(sequence)}
