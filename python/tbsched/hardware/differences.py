"""What two devices differ in: their values, and where those come from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.shown import Shown


@dataclass(frozen=True, slots=True)
class Difference:
    """One value of two devices.

    Attributes:
        path: its key in a device file, such as ``limits.blocks_per_sm``.
        a: the value of the first device.
        b: the value of the second device.
        a_origin: where ``a`` comes from; None if nobody says.
        b_origin: where ``b`` comes from; None if nobody says.
    """

    path: str
    a: Any
    b: Any
    a_origin: Provenance | None
    b_origin: Provenance | None


@dataclass(frozen=True, slots=True, repr=False)
class DeviceDiff(Shown):
    """What two devices differ in.

    Attributes:
        a: the first device.
        b: the second device.
        values: a :class:`Difference` for each value that differs.
        sources: one for each value that is the same, and that comes from elsewhere: measured in
            one device and inherited in the other, for example.
        compared: how many values a device has.

    Example:
        >>> diff = tb.compare_devices("h200", "h200-no-warp-skip")
        >>> [(each.path, each.a, each.b) for each in diff.values]
        [('mechanisms.warp_skip', True, False)]
        >>> diff.same
        False
    """

    a: DeviceSpec
    b: DeviceSpec
    values: tuple[Difference, ...]
    sources: tuple[Difference, ...]
    compared: int

    @property
    def same(self) -> bool:
        """Whether all values are the same, wherever they come from."""
        return not self.values


def compare_devices(
    a: str | os.PathLike[str] | DeviceSpec, b: str | os.PathLike[str] | DeviceSpec
) -> DeviceDiff:
    """Says in which values two devices differ, and where these come from.

    Args:
        a: a device, as for :func:`tbsched.device`.
        b: another one.

    Returns:
        A :class:`DeviceDiff`. The names of the devices are not compared.

    Raises:
        TypeError, ValueError: no such device, or a file that does not describe one.

    Example:
        >>> print(tb.compare_devices("h200", "h200-no-warp-skip"))  # doctest: +ELLIPSIS
        h200 (a) and h200-no-warp-skip (b) differ in 1 of ... values.
        ...
    """
    first, second = find_device(a), find_device(b)
    rows = [_row(field, first, second) for field in FIELDS if field.section]
    return DeviceDiff(
        first,
        second,
        tuple(row for row in rows if row.a != row.b),
        tuple(row for row in rows if row.a == row.b and row.a_origin != row.b_origin),
        len(rows),
    )


def _row(field: Field, a: DeviceSpec, b: DeviceSpec) -> Difference:
    origins = (spec.provenance.get(field.path) for spec in (a, b))
    return Difference(field.path, field.of(a), field.of(b), *origins)
