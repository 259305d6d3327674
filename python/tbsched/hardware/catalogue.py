"""The devices that are shipped, and their ablations."""

from __future__ import annotations

import functools
import os
import tomllib
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tbsched.attached import attached
from tbsched.errors import did_you_mean, shown
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.device_file import INHERITED, read
from tbsched.hardware.spec import DeviceSpec, Provenance

ATTACHED = "gpu"  # the name of the GPU here


def device(name: str | os.PathLike[str] | DeviceSpec) -> DeviceSpec:
    """Returns the device of that name, or the one that a file describes.

    A shipped name may carry an ablation: ``h200-no-warp-skip`` (see :func:`ablations`).

    ``"gpu"`` is GPU 0 of this machine: the rules of the nearest shipped device, with the map of
    this board. The map is measured in some seconds, and kept in the user's cache by the UUID of the
    GPU. If it differs from the shipped map, a ``UserWarning`` says so: boards differ in which units
    are fused off. The rules are not measured; :func:`tbsched.calibrate` does that.

    Args:
        name: a shipped name (:func:`devices`), ``"gpu"``, the path of a ``.toml`` file, or a spec,
            which is returned as it is.

    Raises:
        TypeError: neither a name, a path nor a spec.
        ValueError: no such device, or a file that does not describe one; names key and file.
        NoGpuError: ``"gpu"``, and there is no usable one; the message says what was looked for.
        CudaError: ``"gpu"``, and its driver refused a call.

    Example:
        >>> tb.device("h200").sms
        132
        >>> tb.device("h200-no-warp-skip").mechanisms.warp_skip
        False
    """
    if isinstance(name, DeviceSpec):
        return name
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"device: a name, a path or a DeviceSpec is needed, got {shown(name)}")
    text = os.fspath(name)
    if not isinstance(text, str):
        raise TypeError(f"device: a name, a path or a DeviceSpec is needed, got {shown(name)}")
    if text.endswith(".toml"):
        return read(Path(text), _named)
    return _named(text)


def devices() -> tuple[str, ...]:
    """Returns the names of the shipped devices, without their ablations.

    Example:
        >>> "h200" in tb.devices()
        True
    """
    return tuple(sorted(_device_files()))


def device_titled(title: str, sms: int) -> DeviceSpec | None:
    """Returns the shipped device with the vendor's name and number of SMs, if there is one."""
    known = map(_shipped, devices())
    return next((spec for spec in known if (spec.title, spec.sms) == (title, sms)), None)


def nearest(compute_capability: str, title: str, sms: int) -> DeviceSpec:
    """Returns the shipped device that is most like another one.

    One of the same name and number of SMs, else one of the compute capability, else one of the
    next lower compute capability, of the same major version or the one before, else of any. Among
    several, one of a similar name and number of SMs.
    """

    def apart(spec: DeviceSpec) -> tuple[int, ...]:
        """Returns a sort key: how far a shipped device is from the GPU that is described."""
        higher = _number(spec.compute_capability) - _number(compute_capability)
        alike = set(spec.title.split()) & set(title.split())
        inherited = sum(origin.kind == INHERITED for origin in spec.provenance.values())
        old = _number(compute_capability) // 10 - _number(spec.compute_capability) // 10 > 1
        return old, higher > 0, abs(higher), -len(alike), abs(spec.sms - sms), inherited

    return device_titled(title, sms) or min(map(_shipped, devices()), key=apart)


def _number(compute_capability: str) -> int:
    major, _, minor = compute_capability.partition(".")
    return 10 * int(major) + int(minor)


def ablations() -> dict[str, str]:
    """Returns the shipped ablations: each name, and what it takes out of a device.

    A name with a hyphen before it is appended to a device's name.

    Example:
        >>> tb.ablations()["free-warps"]
        'a warp may go to any processing block with room (Mechanisms 2.1 and 2.2)'
    """
    return {name: str(row["summary"]) for name, row in _ablation_rows().items()}


def shows_in(ablation: str) -> frozenset[str]:
    """What some launch of a sequence must have for it to show: ``cluster``, ``duration``, …"""
    return frozenset(_ablation_rows()[ablation].get("shows_in", ()))


def _names() -> list[str]:
    """Returns the names of all devices and of their ablations."""
    bases = [*devices(), ATTACHED]
    return [*bases, *(f"{base}-{name}" for base in bases for name in _ablation_rows())]


def unablated(spec: DeviceSpec) -> DeviceSpec:
    """Returns the shipped device that a shipped ablation was made of; any other device as it is."""
    for name in devices():
        for ablation in _ablation_rows():
            if spec.name == f"{name}-{ablation}" and spec == _shipped(spec.name):
                return _shipped(name)
    return spec


def even_then_odd(sms: int) -> tuple[int, ...]:
    """Returns the SMs in the order that most GPUs prefer, as far as anyone knows."""
    return (*range(0, sms, 2), *range(1, sms, 2))


@functools.cache
def _device_files() -> dict[str, Traversable]:
    """Returns the shipped device files by name."""
    folder = resources.files("tbsched.hardware") / "devices"
    return {
        file.name.removesuffix(".toml"): file
        for file in folder.iterdir()
        if file.name.endswith(".toml") and file.name != "ablations.toml"
    }


@functools.cache
def _ablation_rows() -> dict[str, dict[str, Any]]:
    text = (resources.files("tbsched.hardware") / "devices" / "ablations.toml").read_text("utf-8")
    return tomllib.loads(text)


def _named(name: str) -> DeviceSpec:
    """Returns the device of a name: a shipped one, the attached GPU, or an ablation of one."""
    base, _, ablation = name.partition("-")
    if base != ATTACHED:
        return _shipped(name)
    spec: DeviceSpec = attached()
    return _ablated(spec, ablation) if ablation else spec


@functools.cache
def _shipped(name: str) -> DeviceSpec:
    """Returns the shipped device of a name, which may end in an ablation."""
    files = _device_files()
    if name in files:
        return read(files[name], _shipped)
    base, _, ablation = name.partition("-")
    while ablation and base not in files:
        more, _, ablation = ablation.partition("-")
        base = f"{base}-{more}"
    if base in files:
        return _ablated(_shipped(base), ablation)
    raise ValueError(
        f"device: {shown(name)} is unknown; there are {', '.join(devices())}, "
        f"{ATTACHED!r} for the one here, or give the path of a .toml file"
        f"{did_you_mean(name, _names())}"
    )


def _ablated(spec: DeviceSpec, ablation: str) -> DeviceSpec:
    """Returns a device without the mechanism that an ablation names."""
    if ablation not in _ablation_rows():
        raise ValueError(
            f"device: {spec.name!r} has no ablation {ablation!r}; there are "
            f"{', '.join(_ablation_rows())}{did_you_mean(ablation, _ablation_rows())}"
        )
    return ablated(spec, ablation)


def ablated(spec: DeviceSpec, ablation: str) -> DeviceSpec:
    """Returns the device without one mechanism, a name of :func:`ablations`."""
    row = _ablation_rows()[ablation]
    changes = {key: row[key] for key in row if key not in ("summary", "shows_in")}
    switches = changes.pop("mechanisms", {})
    if changes.get("sm_preference") == "even_then_odd":
        changes["sm_preference"] = even_then_odd(spec.sms)
    source = Provenance("assumed", f"ablation {ablation}")
    changed = {
        field.path: source
        for field in FIELDS
        if field.name in (switches if field.is_mechanism else changes)
    }
    return replace(
        spec,
        name=f"{spec.name}-{ablation}",
        mechanisms=replace(spec.mechanisms, **switches),
        provenance={**spec.provenance, **changed},
        **changes,
    )
