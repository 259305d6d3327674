"""Arrays: names of their types, and values that hold some."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]
Float64Array: TypeAlias = npt.NDArray[np.float64]
StructuredArray: TypeAlias = npt.NDArray[np.void]
AnyArray = TypeVar("AnyArray", bound=npt.NDArray[np.generic])


def read_only(array: AnyArray) -> AnyArray:
    """The array, which nobody can write to any more."""
    array.flags.writeable = False
    return array
