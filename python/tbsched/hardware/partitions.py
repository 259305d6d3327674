"""How many SMs a part of a GPU has, and which: of a green context, and of a client of MPS."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tbsched import _core
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.checks import flag, integer
from tbsched.program.partition import MAX_GROUPS, Partition, SmSplit

# The least SMs of a group, and what their number is a multiple of, by the first number of the
# compute capability: CUDA Driver API, "Green Contexts". 9 stands for 9.0 and all later ones.
_DOCUMENTED = {6: (2, 2), 7: (2, 2), 8: (4, 2), 9: (8, 8)}


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """How large the groups of a split are, and how many there can be: :func:`split_counts`.

    Attributes:
        sms: SMs of each group.
        most_groups: the driver makes no more groups. It may make fewer where the GPU's GPCs do not
            divide into such groups.
        least_rest: SMs that are left over if there are as many.
        minimum: the fewest SMs that any group can have.
        multiple: what the SMs of a group are a multiple of, unless it has all.

    Example:
        >>> counts = tb.split_counts("rtx3090", min_sms=20)
        >>> counts.most_groups, counts.least_rest
        (4, 2)
    """

    sms: int
    most_groups: int
    least_rest: int
    minimum: int
    multiple: int


def split_counts(
    device: str | os.PathLike[str] | DeviceSpec, min_sms: int, *, groups: int | None = None
) -> SplitCounts:
    """Returns how ``cuDevSmResourceSplitByCount`` divides the SMs of any GPU for green contexts.

    It needs no map of the GPU, so that it cannot say which SMs a group has: :func:`split_sms` does,
    where the map is known. Source: CUDA Driver API, "Green Contexts"; the drivers of an H100 and an
    H200 report the same. There, a group that would be larger than the GPU has all of its SMs.

    Args:
        device: a name (:func:`tbsched.devices`), a path to a ``.toml``, or a spec.
        min_sms: the fewest SMs that each group needs, from 0 to all of them.
        groups: how many groups at most. None is as many as possible.

    Raises:
        TypeError, ValueError: a number outside its range, or a GPU of compute capability below 6.0.

    Example:
        >>> tb.split_counts("a100", min_sms=15)
        SplitCounts(sms=16, most_groups=6, least_rest=12, minimum=4, multiple=2)
    """
    spec = find_device(device)
    wanted = integer("split_counts", "min_sms", min_sms, 0, spec.sms)
    most = (
        MAX_GROUPS if groups is None else integer("split_counts", "groups", groups, 1, MAX_GROUPS)
    )
    known = _documented(spec)
    if known is None:
        raise ValueError(
            f"split_counts.device: {spec.name} has compute capability {spec.compute_capability}; "
            "green contexts need 6.0"
        )
    minimum, multiple = known
    sms = min(-(-max(wanted, minimum) // multiple) * multiple, spec.sms)
    found = min(most, spec.sms // sms)
    return SplitCounts(sms, found, spec.sms - found * sms, minimum, multiple)


def mps_sms(device: str | os.PathLike[str] | DeviceSpec, percentage: int) -> int:
    """Returns how many SMs a client of MPS has with ``CUDA_MPS_ACTIVE_THREAD_PERCENTAGE``.

    They are whole TPCs, rounded down, and as many at least as a green context has. Source: an H200,
    21 percentages (traces ``processes/mps-percentages-h200``). Which SMs they are is not known.

    Args:
        device: a name (:func:`tbsched.devices`), a path to a ``.toml``, or a spec.
        percentage: 1 to 100.

    Raises:
        TypeError, ValueError: a percentage outside its range, or a GPU of compute capability below
            7.0, which has no such percentage.

    Example:
        >>> tb.mps_sms("h200", 25)
        32
    """
    spec = find_device(device)
    share = integer("mps_sms", "percentage", percentage, 1, 100)
    known = _documented(spec)
    if known is None or _generation(spec) < 7:
        raise ValueError(
            f"mps_sms.device: {spec.name} has compute capability {spec.compute_capability}; "
            "percentages of MPS need 7.0"
        )
    tpcs = spec.sms // spec.sms_per_tpc
    return min(max(tpcs * share // 100 * spec.sms_per_tpc, known[0]), spec.sms)


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


def _generation(spec: DeviceSpec) -> int:
    return int(spec.compute_capability.partition(".")[0])


def _documented(spec: DeviceSpec) -> tuple[int, int] | None:
    """Returns the least SMs of a group, and what their number is a multiple of."""
    return _DOCUMENTED.get(min(_generation(spec), 9))
