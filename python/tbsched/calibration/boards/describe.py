"""A first device of a GPU from queries and documents alone."""

from __future__ import annotations

from tbsched.errors import did_you_mean
from tbsched.hardware.described import (
    FIELD,
    Values,
    assumed_values,
    channels_of_one_engine,
    documented_values,
    said_values,
)
from tbsched.hardware.device_file import assembled
from tbsched.hardware.documented import Documented, compute_capabilities, documented
from tbsched.hardware.field import MOST_IN_RANGES
from tbsched.hardware.spec import DeviceSpec, Provenance
from tbsched.launcher.observe import Gpu
from tbsched.launcher.query import Queried, queried
from tbsched.program.checks import instance, integer
from tbsched.program.sequence import Launch

_MAX_CLUSTER = 16  # that any GPU takes, so far
_CONFIGURATIONS = "shared_memory_configurations"


def describe(
    gpu: int | None = None,
    *,
    compute_capability: str | None = None,
    sms: int | None = None,
    title: str | None = None,
    name: str = "described",
) -> DeviceSpec:
    """Describes a GPU by what the driver says and NVIDIA documents; nothing is measured.

    The rules, and every other value, are assumed to be those of the nearest shipped device. The
    provenance says so, value by value. :func:`tbsched.calibrate` measures them.

    Args:
        gpu: number of the GPU to ask, as CUDA counts them; None: the first one, 0. Not together
            with ``compute_capability``.
        compute_capability: such as ``"8.9"``; describes a GPU that is not here, and asks none.
        sms: how many SMs that GPU has.
        title: the vendor's name of that GPU.
        name: of the device.

    Returns:
        A device, which :func:`tbsched.save_device` writes. Its ``gpcs`` are unknown, unless a
        shipped device has its compute capability and its number of SMs.

    Raises:
        TypeError, ValueError: a compute capability of which nothing is documented, one without
            ``sms`` or with ``gpu``, or ``sms`` or ``title`` without one.
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.

    Example:
        >>> spec = tb.describe(compute_capability="8.9", sms=128)
        >>> spec.blocks_per_sm, spec.provenance["limits.blocks_per_sm"].kind
        (24, 'vendor')
        >>> spec.policy, spec.provenance["scheduler.policy"].source
        ('ampere', 'as on rtx3090, the nearest shipped device')
    """
    if compute_capability is None:
        if sms is not None or title is not None:
            limit = "title" if sms is None else "sms"
            raise ValueError(f"{limit}: needs compute_capability; the GPU here says its own")
        index = 0 if gpu is None else gpu
        board = queried(index)
        return described(board, name, largest_cluster(index) if board.clusters else 1)
    if gpu is not None:
        raise ValueError(
            "gpu: does not go with compute_capability, which describes a GPU that is not here; "
            "give one of them"
        )
    known = _documented(instance("describe", "compute_capability", compute_capability, str))
    title = instance("describe", "title", title or "", str)
    if sms is None:
        raise ValueError("sms: is needed with compute_capability, which does not tell it")
    sms = integer("describe", "sms", sms, 1, MOST_IN_RANGES)
    provenance = Provenance("assumed", "as it was given")
    values = assumed_values(compute_capability, title, sms, known)
    values.update(documented_values(compute_capability, known))
    values[FIELD["title"]] = (title or f"NVIDIA GPU, {compute_capability}", provenance)
    values[FIELD["compute_capability"]] = (compute_capability, provenance)
    values[FIELD["sms"]] = (sms, provenance)
    return assembled(name, values)


def described(board: Queried, name: str, max_cluster: int) -> DeviceSpec:
    """Returns the device of what a GPU and its driver say, and of its largest cluster."""
    capability = str(board.info.details["compute_capability"])
    known = documented(capability)
    driver = f"driver {board.info.details['driver']}"
    values = assumed_values(capability, board.info.name, board.info.sms, known)
    values.update(documented_values(capability, known))
    values[FIELD["title"]] = (
        board.info.name,
        Provenance("vendor", f"{driver}: cuDeviceGetName"),
    )
    facts = {"compute_capability": capability, **board.limits}
    values.update(said_values(facts, known, f"{driver}: cuDeviceGetAttribute"))
    values.update(channels_of_one_engine(values))
    if board.clusters:
        source = f"{driver}: cuOccupancyMaxActiveClusters"
        values.update(said_values({"max_cluster": max_cluster}, known, source))
    values.update(_of_sizes(values, board.shared_memory_per_sm, known, driver))
    return assembled(name, values)


def largest_cluster(gpu: int) -> int:
    """Returns the most blocks of a cluster that the GPU takes, as the driver says."""
    with Gpu(gpu) as opened:
        fit = [
            size
            for size in range(1, _MAX_CLUSTER + 1)
            if opened.resident(Launch(size, 32, 16, cluster=size))
        ]
    return max(fit, default=1)


def heading(spec: DeviceSpec) -> str:
    """Returns the comment at the top of a described device's file."""
    kinds = [origin.kind for origin in spec.provenance.values()]
    assumed = kinds.count("assumed")
    return (
        "Written by `tbsched describe`. The driver says or NVIDIA documents "
        f"{len(kinds) - assumed} values.\nThe other {assumed} are assumed: nobody has compared "
        "them with this GPU.\n`tbsched calibrate` measures them."
    )


def _documented(compute_capability: str) -> Documented:
    """Returns what NVIDIA documents of a compute capability."""
    known = documented(compute_capability)
    if known is None:
        every = compute_capabilities()
        raise ValueError(
            f"compute_capability: nothing is documented for {compute_capability!r}; there are "
            f"{', '.join(every)}{did_you_mean(compute_capability, every)}"
        )
    return known


def _of_sizes(values: Values, largest: int, known: Documented | None, driver: str) -> Values:
    """Returns the configurations up to the largest one, which the driver says."""
    field = FIELD[_CONFIGURATIONS]
    sizes, origin = values[field]
    if sizes[-1] == largest:
        return {}
    smaller = tuple(size for size in sizes if size < largest)
    kind = "assumed" if known is None else "measured"
    source = f"{driver}: an SM has {largest} bytes at most; the others: {origin.source}"
    return {field: ((*smaller, largest), Provenance(kind, source))}
