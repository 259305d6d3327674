"""Tables as pandas data frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tbsched.errors import missing

if TYPE_CHECKING:
    import pandas as pd

Table = TypeVar("Table")


def frame_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    """A data frame of columns. What is not known is missing: numbers stay whole numbers.

    Raises:
        ImportError: pandas is missing (``pip install pandas``).
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise missing("data frames", "pandas", "pandas") from error

    def frame(given: Mapping[str, Any]) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: column if isinstance(column, np.ndarray) else pd.array(column)
                for name, column in given.items()
            }
        )

    return of_text(frame, columns)


def of_text(make: Callable[[Mapping[str, Any]], Table], columns: Mapping[str, Any]) -> Table:
    """A table of columns; names with half of a surrogate pair, as damaged files have, get a ?."""
    try:
        return make(columns)
    except UnicodeEncodeError:
        return make({name: _as_text(column) for name, column in columns.items()})


def _as_text(column: Any) -> Any:
    if isinstance(column, np.ndarray) and column.dtype != np.object_:
        return column
    return [x.encode("utf-8", "replace").decode() if isinstance(x, str) else x for x in column]
