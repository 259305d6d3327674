"""Tables for Arrow and as Parquet files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tbsched import storage
from tbsched.errors import missing
from tbsched.show.files.frames import of_text
from tbsched.views import Shown, columns

if TYPE_CHECKING:
    import pyarrow as pa


def to_arrow(value: Shown) -> pa.Table:
    """A value's table for Arrow: polars, DuckDB and others take it.

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
    found = columns(value)
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing("Arrow tables", "pyarrow", "pyarrow") from error
    return of_text(pa.table, found)


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
