"""Tables as files, and as those of other libraries: CSV, pandas, Arrow and Parquet."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tbsched import storage
from tbsched.errors import missing
from tbsched.shown import Shown, columns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Table = TypeVar("Table")

_PIECE = 100_000  # rows that are made into text at a time, as Python's values take much memory
# Characters that nobody sees, which some programs drop: controls, marks of direction, and others.
_UNSEEN = r"[\s\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*"
# What spreadsheets run, but for numbers with a sign.
_FORMULA = re.compile(rf"(?![+-]\d+\.?\d*([eE][+-]?\d+)?$){_UNSEEN}[=+\-@\t\r＝＋－＠]")


def to_csv(value: Shown, path: str | os.PathLike[str]) -> None:
    """Writes a value's table as a CSV file, which appears whole or not at all.

    The first row names the columns, which are those of ``value.to_pandas()``. What is not known
    is empty. The text is UTF-8, and rows end with CR and LF, as RFC 4180 has it. A spreadsheet runs
    what begins like a formula, ``=HYPERLINK(...)``, so such text gets an apostrophe before it,
    which says that it is text. Otherwise names are as they are: a terminal that prints the file
    obeys control characters in them.

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
    table_columns = columns(value)
    with storage.replacing(storage.as_path(path)) as file:
        text = io.TextIOWrapper(file, "utf-8", errors="replace", newline="")
        # With other ends of rows, Python before 3.13 quotes no lone CR, at which readers end a row.
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(table_columns)
        rows = max(map(len, table_columns.values()), default=0)
        for begin in range(0, rows, _PIECE):
            cells = [_cells(column[begin : begin + _PIECE]) for column in table_columns.values()]
            writer.writerows(zip(*cells, strict=True))
        text.detach()


def _cells(column: Any) -> Any:
    """Returns a column as values of Python, which are written fast, with text that no spreadsheet
    runs."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OU":
        return column.tolist()
    return [f"'{x}" if isinstance(x, str) and _FORMULA.match(x) else x for x in column]


def frame_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Returns a data frame of columns. What is not known is missing: numbers stay whole numbers.

    Raises:
        ImportError: pandas is missing (``pip install pandas``).
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise missing("data frames", "pandas", "pandas") from error

    def frame(table_columns: Mapping[str, Any]) -> pd.DataFrame:
        """Returns columns as a data frame."""
        return pd.DataFrame(
            {
                name: column if isinstance(column, np.ndarray) else pd.array(column)
                for name, column in table_columns.items()
            }
        )

    return of_text(frame, columns)


def of_text(make: Callable[[Mapping[str, Any]], Table], columns: Mapping[str, Any]) -> Table:
    """Returns a table of columns; lone surrogates in names, as of damaged files, become ``?``."""
    try:
        return make(columns)
    except UnicodeEncodeError:
        return make({name: _as_text(column) for name, column in columns.items()})


def _as_text(column: Any) -> Any:
    if isinstance(column, np.ndarray) and column.dtype != np.object_:
        return column
    return [x.encode("utf-8", "replace").decode() if isinstance(x, str) else x for x in column]


def to_arrow(value: Shown) -> pa.Table:
    """Returns a value's table for Arrow: polars, DuckDB and others take it.

    Args:
        value: a trace, a sequence, a comparison, a report, a device or advice.

    Returns:
        A table with the columns of ``value.to_pandas()``.

    Raises:
        ImportError: pyarrow is missing (``pip install pyarrow``).
        TypeError: the value has no table.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(264, 256, 32, name="gemm")])
        >>> tb.show.to_arrow(tb.predict(seq, "h200")).num_rows
        264
    """
    table_columns = columns(value)
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing("Arrow tables", "pyarrow", "pyarrow") from error
    return of_text(pa.table, table_columns)


def to_parquet(value: Shown, path: str | os.PathLike[str]) -> None:
    """Writes a value's table as a Parquet file, which appears whole or not at all.

    Args:
        value: as for :func:`to_arrow`.
        path: such as ``out.parquet``.

    Raises:
        FileNotFoundError: no such folder.
        ImportError: pyarrow is missing (``pip install pyarrow``).
        TypeError: the value has no table, or not a path.
        ValueError: something is at the path that cannot be replaced.

    Example:
        >>> import tbsched as tb
        >>> tb.show.to_parquet(tb.device("h200"), "/dev/null")
    """
    table = to_arrow(value)
    import pyarrow.parquet as pq

    with storage.replacing(storage.as_path(path)) as file:
        pq.write_table(table, file)
