"""Tables as CSV files."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

import numpy as np

from tbsched import storage
from tbsched.views import Shown, columns


def to_csv(value: Shown, path: str | os.PathLike[str]) -> None:
    """Writes a value's table as a CSV file, which appears whole or not at all.

    The first line names the columns, which are those of ``value.to_pandas()``. What is not known
    is empty. The text is UTF-8.

    Args:
        value: a trace, a sequence, a comparison, a report, a device or advice.
        path: such as ``out.csv``.

    Raises:
        FileNotFoundError: no such folder.
        TypeError: the value has no table, or not a path.
        ValueError: something is at the path that cannot be replaced.

    Example:
        >>> import tbsched as tb
        >>> tb.show.to_csv(tb.device("h200"), "/dev/null")
    """
    found = columns(value)
    with storage.replacing(storage.as_path(path)) as file:
        text = io.TextIOWrapper(file, "utf-8", errors="replace", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(found)
        writer.writerows(zip(*map(_plain, found.values()), strict=True))
        text.detach()


def _plain(column: Any) -> Any:
    """Python's numbers are written faster than NumPy's."""
    return column.tolist() if isinstance(column, np.ndarray) else column
