"""Which SMs the partitions of a GPU have: the groups of a green context split."""

from __future__ import annotations

import os

from tbsched import _core
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.checks import flag, integer
from tbsched.program.partition import MAX_GROUPS, Partition, SmSplit


def split_sms(
    device: str | os.PathLike[str] | DeviceSpec,
    min_sms: int,
    *,
    groups: int | None = None,
    ignore_coscheduling: bool = False,
    max_cluster: bool = False,
) -> tuple[tuple[Partition, ...], Partition]:
    """Predicts how ``cuDevSmResourceSplitByCount`` splits the SMs of a GPU for green contexts.

    All groups have the same number of SMs. It is ``min_sms``, rounded up to a multiple of the
    number of SMs that the GPU schedules together, 8 on Hopper. The predictions agree with an H200
    and an H100 for every ``min_sms``, number of groups and flag that was tried (traces
    ``partitions/h200.jsonl.xz``, ``partitions/h100.jsonl.xz``).

    Args:
        device: a name (:func:`tbsched.devices`), a path to a ``.toml``, or a spec.
        min_sms: the fewest SMs that each group needs, from 0 to all of them.
        groups: how many groups at most. There are fewer if the SMs do not suffice. None is as many
            as possible.
        ignore_coscheduling: rounds up to whole TPCs only, 2 SMs, and takes them from any GPC
            (``CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING``).
        max_cluster: gives whole GPCs to groups as far as possible, for the largest clusters
            (``CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE``).

    Returns:
        The groups, and a :class:`Partition` of the SMs that are left over.

    Raises:
        TypeError, ValueError: a number outside its range, both flags, or a device whose file does
            not have ``gpcs`` and ``coscheduled_sms``.

    Example:
        >>> groups, rest = tb.split_sms("h200", min_sms=64)
        >>> [len(group) for group in groups], rest.sms
        ([64, 64], (128, 129, 130, 131))
    """
    spec = find_device(device)
    split = SmSplit(
        integer("split_sms", "min_sms", min_sms, 0, spec.sms),
        groups=None if groups is None else integer("split_sms", "groups", groups, 1, MAX_GROUPS),
        ignore_coscheduling=flag("split_sms", "ignore_coscheduling", ignore_coscheduling),
        max_cluster=flag("split_sms", "max_cluster", max_cluster),
    )
    found, left = _core.split_sms(
        spec, split.min_sms, split.groups, split.ignore_coscheduling, split.max_cluster
    )
    return (
        tuple(Partition(tuple(sms), split=split, group=n) for n, sms in enumerate(found)),
        Partition(tuple(left), split=split),
    )
