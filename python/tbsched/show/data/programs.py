"""Programs out of profiles as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.program.program import Program
from tbsched.program.sequence import events_to_data
from tbsched.show.data.traces import rows_data


def program_data(program: Program) -> dict[str, Any]:
    """What was launched, what was measured, and what was assumed."""
    return {
        "format": program.format,
        "device": program.device,
        "sms": program.sms,
        "streams": list(program.streams),
        "events": events_to_data(program.sequence),
        "host": list(program.host),
        "measured": rows_data(program.measured),
        "transfers": rows_data(program.transfers),
        "fitted": list(program.fitted),
        "kernel_overhead": program.kernel_overhead,
        "sources": dict(program.sources),
        "assumed": list(program.assumed),
    }
