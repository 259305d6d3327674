"""Tables as pandas data frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tbsched.errors import missing

if TYPE_CHECKING:
    import pandas as pd


def frame_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    """A data frame of columns. What is not known is missing: numbers stay whole numbers.

    Raises:
        ImportError: pandas is missing (``pip install pandas``).
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise missing("data frames", "pandas", "pandas") from error
    return pd.DataFrame(
        {
            name: column if isinstance(column, np.ndarray) else pd.array(column)
            for name, column in columns.items()
        }
    )
