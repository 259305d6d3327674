"""Where a simulator says that blocks ran, as a part of a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tbsched as tb


def placement(rows: NDArray[np.int64], blocks: int, launch: str) -> tb.Placement:
    """Where the blocks of a launch ran: block, SM, first and last ns in each row.

    Raises:
        SystemExit: not every block ran, each once.
    """
    rows = rows[np.argsort(rows[:, 0])]
    if rows[:, 0].tolist() != list(range(blocks)):
        raise SystemExit(f"{len(rows)} blocks of {launch} ran, not {blocks}")
    sms = rows[:, 1].astype(np.int32)
    return tb.Placement(sms, sms, start_ns=rows[:, 2], end_ns=rows[:, 3])
