"""Which sequences a campaign draws."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tbsched.errors import did_you_mean, shown
from tbsched.hardware.partitions import split_sms
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.partition import Partition

_CLUSTERS = (1, 2, 3, 4, 6, 8, 12, 16)
_RANGES = {
    "carveouts": (0, 100),
    "local_memory": (0, 512 * 1024),
    "clusters": (1, 16),
    "priorities": (-(2**15), 2**15),
}
MOST = 100  # launches of a sequence
_KINDS: dict[str, tuple[type, ...]] = {
    "partitions": (Partition, type(None)),
    "cooperative": (bool,),
}
# The fields that have the values of a field of a launch.
DRAWN = (*_RANGES, *_KINDS)


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """What launches and sequences are drawn from, within the limits of the device.

    For each launch one value of each tuple is drawn. Counterexamples shrink to the first value.

    Attributes:
        min_launches: launches per sequence at least, 1 to 100.
        max_launches: launches per sequence at most, 1 to 100.
        releases: whether earlier launches are released between launches.
        carveouts: of each launch, in percent; None is the driver's choice.
        local_memory: bytes per thread.
        clusters: blocks per cluster; sizes above the device's are not drawn.
        priorities: as in CUDA, a lower number is more urgent.
        partitions: where the blocks may go; None is the whole GPU. In a partition the numbers of
            blocks and the sizes of clusters are those that its SMs take.
        cooperative: whether all blocks run at once. Such launches have no more blocks than the
            empty GPU, or the empty partition, holds.
        min_registers: registers per thread at least. The kernel that runs on a GPU needs some
            itself, and below 32 registers never bind on a GPU with 64 warps per SM.

    Raises:
        TypeError, ValueError: a field out of its range; names the field, the value and the limit.

    Example:
        >>> from tbsched.strategies import SequenceOptions
        >>> SequenceOptions(max_launches=3, carveouts=(None, 100)).releases
        True
    """

    min_launches: int = 1
    max_launches: int = 10
    releases: bool = True
    carveouts: tuple[int | None, ...] = (100,)
    local_memory: tuple[int, ...] = (0,)
    clusters: tuple[int, ...] = (1,)
    priorities: tuple[int, ...] = (0,)
    partitions: tuple[Partition | None, ...] = (None,)
    cooperative: tuple[bool, ...] = (False,)
    min_registers: int = 32

    @classmethod
    def everything(cls, device: DeviceSpec) -> SequenceOptions:
        """Returns all that the device has: what a campaign draws from by default.

        Args:
            device: a spec, such as ``tb.device("h200")``.

        Example:
            >>> from tbsched.strategies import SequenceOptions
            >>> SequenceOptions.everything(tb.device("h200")).clusters
            (1, 2, 3, 4, 6, 8, 12, 16)
        """
        largest = max(1, *device.shared_memory_configurations)
        levels = (100 * size // largest for size in device.shared_memory_configurations)
        partitions = _partitions(device)
        return cls(
            carveouts=tuple(dict.fromkeys((100, None, 0, *levels))),
            local_memory=(0, 4096, 16384),
            clusters=tuple(size for size in _CLUSTERS if size <= device.max_cluster),
            priorities=tuple(range(0, -device.priority_levels, -1)),
            # Every other launch is on the whole GPU.
            partitions=(None,) * max(1, len(partitions)) + partitions,
            cooperative=(False, False, False, True),
        )

    @classmethod
    def until_full(cls) -> SequenceOptions:
        """Returns launches until one does not fit, as the ICCD 2023 paper draws them.

        Nothing is released, and of a launch only blocks, threads, registers and shared memory are
        drawn. 100 launches are drawn; a campaign with ``past_refusal=False`` drops those behind the
        first that does not fit. The paper draws registers from 24 on, here it is 32.

        Example:
            >>> from tbsched.strategies import SequenceOptions
            >>> SequenceOptions.until_full().releases
            False
        """
        return cls(min_launches=MOST, max_launches=MOST, releases=False, carveouts=(None,))

    def without(self, names: Collection[str]) -> SequenceOptions:
        """Returns options that fix some fields to the value of launches that do not set them.

        Args:
            names: among carveouts, local_memory, clusters, priorities, partitions, cooperative.

        Raises:
            TypeError, ValueError: no names, or not of these fields.

        Example:
            >>> from tbsched.strategies import SequenceOptions
            >>> everything = SequenceOptions.everything(tb.device("h200"))
            >>> everything.without(["partitions", "cooperative"]).partitions
            (None,)
        """
        if isinstance(names, str) or not isinstance(names, Collection):
            raise TypeError(f"without: a list of names is needed, got {shown(names)}")
        for name in names:
            if name not in DRAWN:
                raise ValueError(
                    f"without: {shown(name)} is not one of {', '.join(DRAWN)}"
                    f"{did_you_mean(str(name), DRAWN)}"
                )
        usual = SequenceOptions()
        return replace(self, **{name: getattr(usual, name) for name in names})

    def __post_init__(self) -> None:
        _check("max_launches", self.max_launches, 1, MOST)
        _check("min_launches", self.min_launches, 1, self.max_launches)
        _check("min_registers", self.min_registers, 1, 255)
        for name, (low, high) in _RANGES.items():
            for value in self._values(name):
                if not (name == "carveouts" and value is None):
                    _check(name, value, low, high)
        for name, kinds in _KINDS.items():
            for value in self._values(name):
                if not isinstance(value, kinds):
                    kind = " or None".join((kinds[0].__name__, *[""] * (len(kinds) - 1)))
                    raise TypeError(f"{name}: {kind} is needed, got {shown(value)}")
                if isinstance(value, Partition) and not value:
                    raise ValueError(f"{name}: {value!r} has no SMs for any block")

    def _values(self, name: str) -> tuple[object, ...]:
        """Returns the values of a field. Raises TypeError: it is no tuple of 1 to 256 values."""
        values = getattr(self, name)
        if not isinstance(values, tuple) or not values or len(values) > 256:
            raise TypeError(f"{name}: a tuple of 1 to 256 values is needed, got {shown(values)}")
        return values


def _partitions(device: DeviceSpec) -> tuple[Partition, ...]:
    """Returns some groups of several splits and what those leave over, small ones first.

    None where it is not known what a driver would give.
    """
    if not device.gpcs or not device.coscheduled_sms:
        return ()
    unit, tpc = device.coscheduled_sms, device.sms_per_tpc
    half = device.sms // 2 // unit * unit
    splits = [
        split_sms(device, min(half, device.sms)),
        split_sms(device, min(unit, device.sms)),
        split_sms(device, min(3 * unit, device.sms), groups=1),
        split_sms(device, min(4 * unit, device.sms), max_cluster=True),
        split_sms(device, tpc, ignore_coscheduling=True),
        split_sms(device, min(5 * tpc, device.sms), ignore_coscheduling=True),
    ]
    parts = [part for groups, rest in splits for part in (groups[0], groups[-1], rest) if part]
    return tuple(sorted({part.sms: part for part in parts}.values(), key=len))


def _check(name: str, value: object, low: int, high: int) -> None:
    """Refuses what is no integer from ``low`` to ``high``. ``name``: the field, for the message."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: an integer is needed, got {shown(value)}")
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is outside {low}..{high}")
