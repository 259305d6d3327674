"""Which sequences a campaign draws."""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.errors import shown
from tbsched.hardware.spec import DeviceSpec

_CLUSTERS = (1, 2, 3, 4, 6, 8, 12, 16)
_RANGES = {
    "carveouts": (0, 100),
    "local_memory": (0, 512 * 1024),
    "clusters": (1, 16),
    "priorities": (-(2**15), 2**15),
}


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
    min_registers: int = 32

    @classmethod
    def everything(cls, device: DeviceSpec) -> SequenceOptions:
        """All that the device has: what a campaign draws from unless told otherwise.

        Args:
            device: a spec, such as ``tb.device("h200")``.

        Example:
            >>> from tbsched.strategies import SequenceOptions
            >>> SequenceOptions.everything(tb.device("h200")).clusters
            (1, 2, 3, 4, 6, 8, 12, 16)
        """
        largest = max(1, *device.shared_memory_configurations)
        levels = (100 * size // largest for size in device.shared_memory_configurations)
        return cls(
            carveouts=tuple(dict.fromkeys((100, None, 0, *levels))),
            local_memory=(0, 4096, 16384),
            clusters=tuple(size for size in _CLUSTERS if size <= device.max_cluster),
            priorities=(0, -1),
        )

    def __post_init__(self) -> None:
        _check("max_launches", self.max_launches, 1, 100)
        _check("min_launches", self.min_launches, 1, self.max_launches)
        _check("min_registers", self.min_registers, 1, 255)
        for name, (low, high) in _RANGES.items():
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values or len(values) > 256:
                raise TypeError(
                    f"{name}: a tuple of 1 to 256 values is needed, got {shown(values)}"
                )
            for value in values:
                if not (name == "carveouts" and value is None):
                    _check(name, value, low, high)


def _check(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: an integer is needed, got {shown(value)}")
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is outside {low}..{high}")
