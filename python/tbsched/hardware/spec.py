"""Devices as data: one TOML file each, every value with its provenance."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec_checks import validate
from tbsched.hardware.spec_rows import READERS, load, rows_of, string
from tbsched.program.sequence import Launch, Sequence


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value comes from: its kind (``paper``, ``vendor``, …) and the source."""

    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """Which scheduling mechanisms act (numbers: sections IV-A to IV-D of the ICCD 2023 paper).

    Attributes:
        strict_round_robin: 2.1, a warp waits for the processing block whose turn it is.
        warp_skip: 2.2, one processing block more is skipped after a block whose number of warps is
            a multiple of the processing blocks.
        registers, shared_memory: 4, whether an allocation must be ``contiguous``, may wrap around
            the end of a ``circular`` memory, or may be in pieces, ``pooled``.
        shared_memory_configuration: 3, the first block on an idle TPC sets its configuration.
        configuration_per_tpc: both SMs of a TPC share one; else each SM has its own.
        configuration_headroom: launches ask for more than the blocks that fit need.
        explicit_carveout_is_upper_bound: an SM configured larger than an explicit carveout asks
            for refuses the block.
        local_memory_configuration: a larger local memory waits for an idle GPU.
        clusters_seek_idle_sms: for a cluster, an idle SM comes before one with as much room.
        clusters_take_whole_tpcs: a cluster takes whole TPCs as far as its size allows.
    """

    strict_round_robin: bool
    warp_skip: bool
    registers: str
    shared_memory: str
    shared_memory_configuration: bool
    configuration_per_tpc: bool
    configuration_headroom: bool
    explicit_carveout_is_upper_bound: bool
    local_memory_configuration: bool
    clusters_seek_idle_sms: bool
    clusters_take_whole_tpcs: bool


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A GPU as the predictor sees it. Sizes in bytes, registers of 32 bits.

    Attributes:
        name: what :func:`device` finds it by.
        title: the vendor's name.
        compute_capability: such as ``9.0``.
        sms: streaming multiprocessors.
        sms_per_tpc: SM n belongs to TPC n // sms_per_tpc.
        gpcs: the TPCs of each GPC; TPCs of no GPC ("singletons") are in none; empty if unknown.
        sm_preference: all SMs, the preferred first among equally suitable ones.
        processing_blocks, blocks_per_sm, warps_per_sm, registers_per_sm: per SM.
        cluster_blocks_per_sm: how many blocks of clusters an SM holds at most.
        threads_per_block, registers_per_thread, max_cluster: the runtime's limits.
        register_unit: registers, allocated per warp.
        shared_memory_unit, shared_memory_reserve: allocation unit, and the runtime's own per block.
        shared_memory_per_block: the most that a block may ask for.
        shared_memory_configurations: sizes that an SM can be configured to, ascending.
        local_memory_initial: bytes per thread that an untouched GPU is set up for.
        local_memory_unit: it grows in steps of so many.
        mechanisms: which mechanisms act.
        policy: the row of the policy table that predicts this device.
        launch_order: which waiting launch is considered first, a row of :func:`launch_orders`.
        hardware_queues: the queues that streams are mapped to (CUDA_DEVICE_MAX_CONNECTIONS).
        resident_grids: launches that can run or wait for room at once.
        launch_latency_ns: from the launch call until the launch has reached the GPU.
        completion_latency_ns: from the exit of a launch's last block until what waits for the
            launch may start.
        exit_latency_ns: from the end of a block until its room is there for another.
        event_latency_ns, legacy_latency_ns: on top of completion_latency_ns for what waits for an
            event; to and from the legacy stream.
        launch_switch_ns: from the first block of a launch until another launch is considered.
        provenance: the source of each value, by its key in the TOML file.
    """

    name: str
    title: str
    compute_capability: str
    sms: int
    sms_per_tpc: int
    gpcs: tuple[tuple[int, ...], ...]
    sm_preference: tuple[int, ...]
    processing_blocks: int
    blocks_per_sm: int
    cluster_blocks_per_sm: int
    warps_per_sm: int
    registers_per_sm: int
    threads_per_block: int
    registers_per_thread: int
    max_cluster: int
    register_unit: int
    shared_memory_unit: int
    shared_memory_reserve: int
    shared_memory_per_block: int
    shared_memory_configurations: tuple[int, ...]
    local_memory_initial: int
    local_memory_unit: int
    mechanisms: Mechanisms
    policy: str
    launch_order: str
    hardware_queues: int
    resident_grids: int
    launch_latency_ns: int
    completion_latency_ns: int
    exit_latency_ns: int
    event_latency_ns: int
    legacy_latency_ns: int
    launch_switch_ns: int
    provenance: Mapping[str, Provenance] = field(
        default_factory=dict, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.mechanisms, Mechanisms):
            raise TypeError(f"mechanisms: a Mechanisms is needed, got {self.mechanisms!r}")
        validate(self)

    @property
    def tpcs(self) -> int:
        """Number of TPCs."""
        return -(-self.sms // self.sms_per_tpc)

    @property
    def gpc_of_tpc(self) -> tuple[int, ...]:
        """The GPC of each TPC; -1 for a TPC of no GPC, and for all where the map is unknown."""
        found = {tpc: gpc for gpc, members in enumerate(self.gpcs) for tpc in members}
        return tuple(found.get(tpc, -1) for tpc in range(self.tpcs))

    def initial_states(self, policy: str | None = None) -> tuple[InitialState, ...]:
        """The latent states that this GPU can be in when idle; the first is the default.

        Args:
            policy: the row of the policy table that enumerates them; None is the device's own.

        Raises:
            TypeError, ValueError: no such policy, or none for this device.
        """
        if policy is None:
            policy = self.policy
        elif not isinstance(policy, str):
            raise TypeError(f"policy: a name is needed, got {policy!r}")
        return tuple(model(self, policy)[1])

    def __hash__(self) -> int:
        # Of all fields it takes longer than what is kept by spec takes to find.
        return hash((self.name, self.policy, self.launch_order))

    def check(self, sequence: Sequence) -> None:
        """Refuses what the CUDA runtime would refuse on this device.

        Raises:
            TypeError: not a :class:`Sequence`.
            ValueError: a launch that can never run; names launch, field, value and limit.
        """
        if not isinstance(sequence, Sequence):
            raise TypeError(f"sequence: a Sequence is needed, got {sequence!r}")
        most_threads = min(self.threads_per_block, 32 * self.warps_per_sm)
        most_registers = self.registers_per_thread
        # Of these alone a block always fits.
        few_registers = min(most_registers, self._registers_for(most_threads))
        for number, launch in enumerate(sequence.launches):
            if (
                launch.threads > most_threads
                or (
                    launch.registers > few_registers
                    and launch.registers > min(most_registers, self._registers_for(launch.threads))
                )
                or launch.shared_memory > self.shared_memory_per_block
                or launch.cluster > self.max_cluster
            ):
                self._refuse(number, launch, most_threads)

    def _registers_for(self, threads: int) -> int:
        """Per thread at most, for a block of so many threads to fit an SM."""
        warps_each = -(-threads // (32 * self.processing_blocks))
        per_warp = self.registers_per_sm // self.processing_blocks // warps_each
        return per_warp // self.register_unit * self.register_unit // 32

    def _refuse(self, number: int, launch: Launch, most_threads: int) -> None:
        limits = {
            "threads": most_threads,
            "registers": self.registers_per_thread,
            "shared_memory": self.shared_memory_per_block,
            "cluster": self.max_cluster,
        }
        for name, limit in limits.items():
            value = getattr(launch, name)
            if value > limit:
                raise ValueError(
                    f"launch {number}: {name}: {value} is more than {self.name} allows, {limit}"
                )
            if name == "registers" and value > (most := self._registers_for(launch.threads)):
                raise ValueError(
                    f"launch {number}: registers: {value} per thread with {launch.threads} "
                    f"threads is more than an SM of {self.name} holds, {most}"
                )


def device(name: str | os.PathLike[str] | DeviceSpec) -> DeviceSpec:
    """The device of that name, at that path (``.toml``), or the spec itself.

    A shipped name may carry an ablation: ``h200-no-warp-skip`` (see :func:`ablations`).

    Raises:
        TypeError: neither a name, a path nor a spec.
        ValueError: no such device, or a file that does not describe one; names key and file.
    """
    if isinstance(name, DeviceSpec):
        return name
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"device: a name, a path or a DeviceSpec is needed, got {name!r}")
    text = os.fspath(name)
    if not isinstance(text, str):
        raise TypeError(f"device: a name, a path or a DeviceSpec is needed, got {name!r}")
    if text.endswith(".toml"):
        return _resolve(Path(text), ())
    return _shipped(text)


@functools.lru_cache(maxsize=128)
def model(
    spec: DeviceSpec, policy: str
) -> tuple[_core.Model, dict[InitialState, _core.InitialState]]:
    """The device under the policy, for the core, and its latent states; the first is the default.

    Kept, as most programs ask about one device.

    Raises:
        ValueError: no such policy, or none for this device.
    """
    found = _core.Model(_core_spec(spec), policy)
    return found, {InitialState(**components): state for state, components in found.states()}


def _core_spec(spec: DeviceSpec) -> _core.DeviceSpec:
    tpc_of_sm = [sm // spec.sms_per_tpc for sm in range(spec.sms)]
    gpc_of_tpc = spec.gpc_of_tpc
    return _core.DeviceSpec(
        name=spec.name,
        tpc_of_sm=tpc_of_sm,
        gpc_of_sm=[gpc_of_tpc[tpc] for tpc in tpc_of_sm],
        sm_preference=list(spec.sm_preference),
        processing_blocks=spec.processing_blocks,
        blocks_per_sm=spec.blocks_per_sm,
        cluster_blocks_per_sm=spec.cluster_blocks_per_sm,
        warps_per_sm=spec.warps_per_sm,
        registers_per_sm=spec.registers_per_sm,
        register_unit=spec.register_unit,
        shared_memory_unit=spec.shared_memory_unit,
        shared_memory_reserve=spec.shared_memory_reserve,
        shared_memory_configurations=list(spec.shared_memory_configurations),
        local_memory_initial=spec.local_memory_initial,
        local_memory_unit=spec.local_memory_unit,
        max_cluster=spec.max_cluster,
        mechanisms=_core.Mechanisms(**asdict(spec.mechanisms)),
        launch_order=spec.launch_order,
        hardware_queues=spec.hardware_queues,
        resident_grids=spec.resident_grids,
        launch_latency_ns=spec.launch_latency_ns,
        completion_latency_ns=spec.completion_latency_ns,
        exit_latency_ns=spec.exit_latency_ns,
        event_latency_ns=spec.event_latency_ns,
        legacy_latency_ns=spec.legacy_latency_ns,
        launch_switch_ns=spec.launch_switch_ns,
    )


def devices() -> tuple[str, ...]:
    """The names of the shipped devices, without their ablations."""
    return tuple(sorted(_device_files()))


def ablations() -> dict[str, str]:
    """The shipped ablations, ``name: summary``; append one to a device's name."""
    return {name: str(row["summary"]) for name, row in _ablation_rows().items()}


def _even_then_odd(sms: int) -> tuple[int, ...]:
    return (*range(0, sms, 2), *range(1, sms, 2))


@functools.cache
def _device_files() -> dict[str, Traversable]:
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


@functools.cache
def _shipped(name: str) -> DeviceSpec:
    files = _device_files()
    if name in files:
        return _resolve(files[name], ())
    base, _, ablation = name.partition("-")
    while ablation and base not in files:
        more, _, ablation = ablation.partition("-")
        base = f"{base}-{more}"
    if base in files and ablation in _ablation_rows():
        return _ablate(_shipped(base), ablation)
    if base in files:
        raise ValueError(
            f"device: {base!r} has no ablation {ablation!r}; there are "
            f"{', '.join(_ablation_rows())}"
        )
    raise ValueError(
        f"device: {name!r} is unknown; there are {', '.join(devices())}, "
        "or give the path of a .toml file"
    )


def _ablate(spec: DeviceSpec, ablation: str) -> DeviceSpec:
    changes = {key: value for key, value in _ablation_rows()[ablation].items() if key != "summary"}
    switches = changes.pop("mechanisms", {})
    if changes.get("sm_preference") == "even_then_odd":
        changes["sm_preference"] = _even_then_odd(spec.sms)
    source = Provenance("assumed", f"ablation {ablation}")
    changed = {
        path: source
        for path in READERS
        if path.split(".")[1] in (switches if _is_mechanism(path) else changes)
    }
    return replace(
        spec,
        name=f"{spec.name}-{ablation}",
        mechanisms=replace(spec.mechanisms, **switches),
        provenance={**spec.provenance, **changed},
        **changes,
    )


def _resolve(file: Traversable, seen: tuple[str, ...]) -> DeviceSpec:
    data = load(file)
    parent: DeviceSpec | None = None
    extends = data.pop("extends", None)
    if extends is not None:
        here = str(file.resolve() if isinstance(file, Path) else file)
        if here in seen:
            raise ValueError(f"{file}: extends itself, through {' -> '.join(seen)}")
        parent = _parent(string(f"{file}: extends", extends), file, (*seen, here))

    values, origins = rows_of(file, data)
    provenance = dict(parent.provenance) if parent else {}
    provenance.update({path: Provenance(*origin) for path, origin in origins.items()})
    if parent is None:
        missing = [path for path in READERS if path not in values]
        if missing:
            raise ValueError(f"{file}: {missing[0]!r} is missing")

    plain = {path.split(".")[1]: v for path, v in values.items() if not _is_mechanism(path)}
    switches = {path.split(".")[1]: v for path, v in values.items() if _is_mechanism(path)}
    name = file.name.removesuffix(".toml")
    try:
        if parent is None:
            mechanisms = Mechanisms(**switches)
            return DeviceSpec(name=name, mechanisms=mechanisms, provenance=provenance, **plain)
        mechanisms = replace(parent.mechanisms, **switches)
        return replace(parent, name=name, mechanisms=mechanisms, provenance=provenance, **plain)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _is_mechanism(path: str) -> bool:
    return path.startswith("mechanisms.")


def _parent(extends: str, file: Traversable, seen: tuple[str, ...]) -> DeviceSpec:
    try:
        if extends.endswith(".toml") and isinstance(file, Path):
            return _resolve(file.parent / extends, seen)
        return _shipped(extends)
    except ValueError as error:
        raise ValueError(f"{file}: extends: {error}") from None
