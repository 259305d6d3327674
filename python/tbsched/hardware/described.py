"""The device that a GPU is: a shipped one, or what a driver, a profile and documents say of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices, even_then_odd, nearest
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.device_file import assembled
from tbsched.hardware.documented import Documented, documented
from tbsched.hardware.field import Field
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.program.gpu_facts import GpuFacts

FIELD = {field.name: field for field in FIELDS if field.section}
# By the name of a field: its value, and where that is from.
Values: TypeAlias = dict[Field, tuple[Any, Provenance]]

_SAID = "the profile says it"
_ONE_CHANNEL = "as in two profiles of an RTX 4060 Ti: copies of all streams in the order of calls"
_WARP = 32  # threads of a warp of every GPU of NVIDIA


def assumed_values(capability: str, title: str, sms: int, known: Documented | None) -> Values:
    """Returns the values of the nearest shipped device, as assumptions."""
    base = nearest(capability, title, sms)
    source = Provenance("assumed", f"as on {base.name}, the nearest shipped device")
    values = {field: (field.of(base), source) for field in FIELDS if field.section}
    if (base.compute_capability, base.sms) != (capability, sms):
        unknown = Provenance("assumed", "unknown; `tbsched calibrate` finds it where it can")
        order = Provenance("assumed", "even SMs first, as on most GPUs that were looked at")
        values[FIELD["gpcs"]] = ((), unknown)
        values[FIELD["sm_preference"]] = (even_then_odd(sms), order)
    if known is not None and base.compute_capability != capability:
        portable = Provenance("assumed", f"what is portable; a GPU may allow more: {known.source}")
        values[FIELD["max_cluster"]] = (known.portable_cluster, portable)
    return values


def documented_values(capability: str, known: Documented | None) -> Values:
    """Returns the values that NVIDIA documents for a compute capability."""
    if known is None:
        return {}
    source = f"documented for compute capability {capability}: {known.source}"
    return {
        FIELD[name]: (value, Provenance("vendor", source)) for name, value in known.limits.items()
    }


def said_values(said: Mapping[str, Any], known: Documented | None, source: str) -> Values:
    """Returns the driver's values; those that differ from documents count as measured."""
    limits = {} if known is None else known.limits
    return {
        FIELD[name]: (value, Provenance("vendor", source))
        if limits.get(name, value) == value
        else (value, Provenance("measured", f"{source}; NVIDIA documents {limits[name]}"))
        for name, value in said.items()
    }


def known_engines(engines: int) -> int:
    """Returns the ``copy_engine_count`` of a GPU whose ``asyncEngineCount`` is ``engines``.

    With two or more, each direction has its own. A GPU that names none still copies.
    """
    return min(max(engines, 1), 2)


def channels_of_one_engine(values: Values) -> Values:
    """Returns the channels of a copy engine that is the only one; empty if it is not.

    The shipped devices have two, whose channels say nothing of it.
    """
    if values[FIELD["copy_engine_count"]][0] != 1:
        return {}
    return {FIELD["copy_channels"]: (1, Provenance("assumed", _ONE_CHANNEL))}


def known_device(name: str | None, sms: int | None) -> DeviceSpec | None:
    """Returns the shipped device of a GPU's name, such as "NVIDIA H100 80GB HBM3", if there is one.

    Args:
        name: as the profile has it; None: it has none.
        sms: how many SMs it has, which a device of the same name may have fewer of; None: unknown.
    """
    words = re.findall(r"[a-z0-9]+", (name or "").lower())
    pairs = [first + second for first, second in itertools.pairwise(words)]
    for known in devices():
        if known in words or known in pairs:
            spec = find_device(known)
            return spec if sms in (None, spec.sms) else None
    return None


def device_of_facts(facts: GpuFacts) -> DeviceSpec | None:
    """Returns a shipped device, or a description; None if the profile says too little.

    What the profile does not say of the GPU is documented for its compute capability, or assumed
    to be as on the nearest shipped device.
    """
    shipped = known_device(facts.name, facts.sms)
    if shipped is not None or facts.sms is None or facts.major is None or facts.minor is None:
        return shipped
    capability = f"{facts.major}.{facts.minor}"
    known, given = documented(capability), Provenance("vendor", _SAID)
    title = facts.name or f"NVIDIA GPU, {capability}"
    said = {
        "warps_per_sm": (facts.threads_per_sm or 0) // _WARP,
        "blocks_per_sm": facts.blocks_per_sm,
        "registers_per_sm": facts.registers_per_sm,
        "shared_memory_per_block": facts.shared_memory_per_block,
    }
    if facts.copy_engines is not None:
        said["copy_engine_count"] = known_engines(facts.copy_engines)
    values = assumed_values(capability, title, facts.sms, known)
    values.update(documented_values(capability, known))
    values.update(said_values({k: v for k, v in said.items() if v}, known, _SAID))
    values.update(channels_of_one_engine(values))
    values[FIELD["title"]] = (title, given)
    values[FIELD["compute_capability"]] = (capability, given)
    values[FIELD["sms"]] = (facts.sms, given)
    try:
        return assembled(title, values)
    except ValueError:  # the numbers of the file do not fit each other
        return None
