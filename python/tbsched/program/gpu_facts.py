"""What a profile says of the GPU on which it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

_OTHERS = {"AMD": ("amd", "instinct", "radeon"), "Intel": ("intel", "arc(tm)", "ponte vecchio")}
_WARP = 32  # threads of a warp of every GPU of NVIDIA
MAX_SMS = 65_536  # as of a device: schema/device.toml


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What a profile says of a GPU; None: it does not say it. Sizes in bytes.

    Attributes:
        name: such as "NVIDIA GeForce RTX 4090".
        sms: how many SMs it has.
        major: of its compute capability.
        minor: of its compute capability.
        warp_size: threads of a warp.
        copy_engines: how many engines for copies it has.
        threads_per_sm: that an SM holds at most.
        blocks_per_sm: that an SM holds at most.
        registers_per_sm: that an SM has.
        shared_memory_per_sm: that an SM has.
        shared_memory_per_block: what a block may have if it asks for it.
    """

    name: str | None = None
    sms: int | None = None
    major: int | None = None
    minor: int | None = None
    warp_size: int | None = None
    copy_engines: int | None = None
    threads_per_sm: int | None = None
    blocks_per_sm: int | None = None
    registers_per_sm: int | None = None
    shared_memory_per_sm: int | None = None
    shared_memory_per_block: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, object]) -> GpuFacts:
        """Returns the facts that a file has by these names, without invalid values."""
        facts: dict[str, object] = {}
        for field in fields(cls):
            value = values.get(field.name)
            high = MAX_SMS if field.name == "sms" else 2**31 - 1
            is_text = field.name == "name"
            if isinstance(value, str) if is_text else type(value) is int and 0 <= value <= high:
                facts[field.name] = value
        return cls(**facts)  # type: ignore[arg-type]

    @property
    def other_vendor(self) -> str | None:
        """Returns the vendor of the GPU; None if that is NVIDIA."""
        name = (self.name or "").lower()
        if "nvidia" in name:
            return None
        for vendor, words in _OTHERS.items():
            if any(word in name for word in words):
                return vendor
        return "another vendor" if self.warp_size not in (None, 0, _WARP) else None
