"""Some of the SMs of a GPU, and what a driver is asked for to get them."""

from __future__ import annotations

import itertools
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

from tbsched.program.checks import flag, instance, integer, items, known_fields
from tbsched.program.written import given_fields, source
from tbsched.shown import Shown

MAX_SM = 65535
MAX_GROUPS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SmSplit:
    """What the driver is asked for when it splits the SMs of a GPU for green contexts.

    The arguments of :func:`tbsched.split_sms`, which say what they mean.

    Attributes:
        min_sms: the fewest SMs of each group, from 0.
        groups: how many groups at most, from 1; None is as many as possible.
        ignore_coscheduling: whole TPCs of any GPC suffice.
        max_cluster: whole GPCs as far as possible.

    Raises:
        TypeError, ValueError: a field out of its range; names the field, the value and the limit.

    Example:
        >>> _, rest = tb.split_sms("h200", min_sms=64)
        >>> rest.split
        SmSplit(min_sms=64)
    """

    min_sms: int
    _: KW_ONLY
    groups: int | None = None
    ignore_coscheduling: bool = False
    max_cluster: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "min_sms", integer("SmSplit", "min_sms", self.min_sms, 0, MAX_SM))
        if self.groups is not None:
            groups = integer("SmSplit", "groups", self.groups, 1, MAX_GROUPS)
            object.__setattr__(self, "groups", groups)
        flag("SmSplit", "ignore_coscheduling", self.ignore_coscheduling)
        flag("SmSplit", "max_cluster", self.max_cluster)

    def __repr__(self) -> str:
        return source(self)


@dataclass(frozen=True, slots=True)
class Partition(Shown):
    """Some of the SMs of a GPU, as a green context has them; it is false if there are none.

    :func:`tbsched.split_sms` makes partitions. One that is made by hand, of SMs alone, can be
    predicted, but not observed: no driver gives just these SMs.

    Attributes:
        sms: the SMs, ascending, 0 to 65535.
        split: what the driver is asked for; None if nobody asks one.
        group: the number of the group among those of the split; None is what is left over.

    Raises:
        TypeError, ValueError: a field out of its range, or a group of no split; names the field,
            the value and the limit.

    Example:
        >>> groups, _ = tb.split_sms("h200", min_sms=8)
        >>> groups[0]
        Partition(sms=(0, 1, 16, 17, 32, 33, 48, 49), split=SmSplit(min_sms=8), group=0)
        >>> tb.Launch(8, 256, 32, partition=groups[0]).partition.group
        0
    """

    sms: tuple[int, ...]
    _: KW_ONLY
    split: SmSplit | None = None
    group: int | None = None

    def __post_init__(self) -> None:
        listed = items("Partition", "sms", self.sms)
        sms = tuple(integer("Partition", f"sms[{k}]", sm, 0, MAX_SM) for k, sm in enumerate(listed))
        for before, after in itertools.pairwise(sms):
            if after <= before:
                raise ValueError(f"Partition.sms: {after} after {before}, they must ascend")
        object.__setattr__(self, "sms", sms)
        if self.split is not None:
            instance("Partition", "split", self.split, SmSplit)
        if self.group is not None:
            group = integer("Partition", "group", self.group, 0, MAX_GROUPS)
            object.__setattr__(self, "group", group)
            if self.split is None:
                raise ValueError(f"Partition.group: {group} needs Partition.split, got None")

    def __len__(self) -> int:
        return len(self.sms)

    def __repr__(self) -> str:
        return source(self)


def partition_to_data(partition: Partition) -> dict[str, Any]:
    """Returns the fields as JSON data, without those that have their default."""
    data = given_fields(partition)
    if partition.split is not None:
        data["split"] = given_fields(partition.split)
    return data


def partition_from_data(where: str, data: object) -> Partition:
    """Returns the inverse of :func:`partition_to_data`; ``where`` is for messages of errors."""
    values = known_fields(where, data, ("sms", "split", "group"), ("sms",))
    if values.get("split") is not None:
        split = known_fields(f"{where}.split", values["split"], _SPLIT_FIELDS, ("min_sms",))
        values["split"] = SmSplit(**split)
    return Partition(**values)


_SPLIT_FIELDS = tuple(field.name for field in fields(SmSplit))
