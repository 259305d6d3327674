"""Arrays: names of their types, and values that hold some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]
Float64Array: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
StructuredArray: TypeAlias = npt.NDArray[np.void]
AnyArray = TypeVar("AnyArray", bound=npt.NDArray[np.generic])


def read_only(array: AnyArray) -> AnyArray:
    """Makes an array read-only, and returns it."""
    array.flags.writeable = False
    return array


def numbered_blocks(sizes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns the launch and the number of each block, int64 (blocks,) each, by launch and number.

    Args:
        sizes: int64 (launches,), the blocks of each launch.
    """
    launch = np.repeat(np.arange(len(sizes)), sizes)
    return launch, np.arange(len(launch)) - np.repeat(sizes.cumsum() - sizes, sizes)


def objects(values: Iterable[object]) -> npt.NDArray[np.object_]:
    """Returns an array of any values, object (values,)."""
    listed = list(values)
    array = np.empty(len(listed), np.object_)
    array[:] = listed
    return array


def structured(columns: tuple[Any, ...], kind: np.dtype[np.void]) -> StructuredArray:
    """Returns columns of one length as a read-only structured array of a type."""
    array = np.empty(len(columns[0]), kind)
    for name, column in zip(kind.names or (), columns, strict=True):
        array[name] = column
    return read_only(array)


class HoldsArrays:
    """A frozen dataclass whose arrays nobody can write to, also once it was copied or pickled."""

    __slots__: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A view: whoever made the array may go on with it.
        for name in self.__slots__:
            value = getattr(self, name)
            # Most are None; to look first makes each placement of a prediction faster.
            if value is not None and isinstance(value, np.ndarray) and value.flags.writeable:
                object.__setattr__(self, name, read_only(value.view()))

    def __reduce__(self) -> tuple[Any, ...]:
        values = tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return type(self), values
