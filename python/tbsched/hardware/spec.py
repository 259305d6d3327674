"""A GPU as the predictor sees it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from tbsched import _core
from tbsched.errors import did_you_mean, on_one_line, shown
from tbsched.hardware.assumed import rules_of
from tbsched.hardware.device_fields import FIELDS, DeviceFields, Mechanisms
from tbsched.hardware.initial_state import InitialState
from tbsched.program.checks import reader_of
from tbsched.program.sequence import Launch, Sequence
from tbsched.shown import Shown

_IN_TURNS_OF_GPCS = "hopper"  # the policy by which single blocks go to GPCs in turn, too


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value of a device comes from.

    Attributes:
        kind: ``paper``, ``vendor``, ``measured``, ``assumed`` or ``inherited``.
        source: the table, document, trace, reason or parent device.
        checked: of an inherited value the recordings of this GPU that agree with it; empty: none.

    Example:
        >>> tb.device("rtx3090").provenance["limits.blocks_per_sm"].kind
        'paper'
    """

    kind: str
    source: str
    checked: str = ""

    @property
    def is_assumed(self) -> bool:
        """Whether nothing shows it of this GPU. It is assumed, or inherited and not checked."""
        return self.kind == "assumed" or (self.kind == "inherited" and not self.checked)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeviceSpec(Shown, DeviceFields):
    """A GPU as the predictor sees it: the fields of a device file, checked, and their sources.

    The page on device files lists all fields. ``dataclasses.replace`` makes a device that differs
    in one of them.

    Attributes:
        provenance: the source of each value, by its key in the TOML file.

    Raises:
        TypeError, ValueError: a device that makes no sense; names the field, the value and the
            limit.

    Example:
        >>> import dataclasses
        >>> spec = tb.device("h200")
        >>> spec.tpcs, len(spec.gpcs), spec.gpc_of_tpc.count(-1)
        (66, 8, 4)
        >>> dataclasses.replace(spec, name="mine", hardware_queues=32)
        <DeviceSpec: mine, NVIDIA H200, 132 SMs, policy hopper>
    """

    provenance: Mapping[str, Provenance] = field(
        default_factory=dict, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.mechanisms, Mechanisms):
            raise TypeError(f"mechanisms: a Mechanisms is needed, got {shown(self.mechanisms)}")
        for item in FIELDS:
            item.check(item.of(self))
        _core.check(self)

    @property
    def tpcs(self) -> int:
        """Number of TPCs."""
        return -(-self.sms // self.sms_per_tpc)

    @property
    def gpc_of_tpc(self) -> tuple[int, ...]:
        """The GPC of each TPC; -1 for a TPC of no GPC, and for all where the map is unknown."""
        found = {tpc: gpc for gpc, members in enumerate(self.gpcs) for tpc in members}
        return tuple(found.get(tpc, -1) for tpc in range(self.tpcs))

    @property
    def assumed_rules(self) -> tuple[str, ...]:
        """Returns the rules of this GPU that are assumed, in words.

        Example:
            >>> tb.device("h200").assumed_rules
            ('local memory',)
            >>> "order of launches" in tb.device("a100").assumed_rules
            True
        """
        return rules_of(self.assumed_fields(self.policy))

    def assumed_fields(self, policy: str) -> tuple[str, ...]:
        """Returns the fields of rules whose values are assumed, as ``provenance`` names them.

        Args:
            policy: the one that predicts; another than the device's own is chosen, not assumed.

        Example:
            >>> tb.device("h200").assumed_fields("hopper")
            ('allocation.local_memory_initial',)
        """
        left_out = set() if policy == self.policy else {"scheduler.policy"}
        if self.max_cluster == 1:
            left_out |= {item.path for item in FIELDS if item.when == "cluster"}
            if policy != _IN_TURNS_OF_GPCS:
                left_out.add("topology.gpcs")
        return tuple(
            item.path
            for item in FIELDS
            if item.rule
            and item.path not in left_out
            and item.path in self.provenance
            and self.provenance[item.path].is_assumed
        )

    def initial_states(self, policy: str | None = None) -> tuple[InitialState, ...]:
        """Returns the latent states that this GPU can be in when idle; the first is the default.

        Args:
            policy: the row of the policy table that enumerates them; None is the device's own.

        Raises:
            TypeError, ValueError: no such policy, or none for this device.

        Example:
            >>> len(tb.device("h200").initial_states())
            32
        """
        if policy is None:
            policy = self.policy
        elif not isinstance(policy, str):
            raise TypeError(f"policy: a name is needed, got {shown(policy)}")
        return tuple(model(self, policy)[1])

    def __hash__(self) -> int:
        # Variants of a device most often differ in these. A hash of all fields would take longer
        # than the lookups in caches that it is for.
        return hash(
            (self.name, self.policy, self.launch_order, self.sms, self.blocks_per_sm,
             self.warps_per_sm, self.hardware_queues)
        )  # fmt: skip

    def check(self, sequence: Sequence, gpu: int | None = None) -> None:
        """Refuses what the CUDA runtime would refuse on this device.

        Args:
            sequence: what is to run.
            gpu: looks at the launches of this GPU alone; None: at all of them.

        Raises:
            TypeError: not a :class:`Sequence`.
            ValueError: a launch that can never run; names launch, field, value and limit.

        Example:
            >>> tb.device("h200").check(tb.Sequence([tb.Launch(1, 1024, 128)]))
            Traceback (most recent call last):
            ValueError: launch 0: registers: 128 per thread with 1024 threads is more than ...
        """
        if not isinstance(sequence, Sequence):
            reader = reader_of(Sequence, sequence)
            raise TypeError(f"sequence: a Sequence is needed, got {shown(sequence)}{reader}")
        most_threads = min(self.threads_per_block, 32 * self.warps_per_sm)
        most_registers = self.registers_per_thread
        # With no more registers than these, a block of any size fits.
        few_registers = min(most_registers, self._registers_for(most_threads))
        of = () if gpu is None else sequence.launch_gpus
        for number, launch in enumerate(sequence.launches):
            if gpu is not None and of[number] != gpu:
                continue
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
        """Returns the most registers per thread with which a block of this size fits an SM."""
        warps_each = -(-threads // (32 * self.processing_blocks))
        per_warp = self.registers_per_sm // self.processing_blocks // warps_each
        return per_warp // self.register_unit * self.register_unit // 32

    def _refuse(self, number: int, launch: Launch, most_threads: int) -> None:
        """Refuses a launch that exceeds a limit of a block."""
        which = (
            f"launch {number} ({on_one_line(launch.name)})" if launch.name else f"launch {number}"
        )
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
                    f"{which}: {name}: {value} is more than {self.name} allows, {limit}"
                )
            if name == "registers" and value > (most := self._registers_for(launch.threads)):
                raise ValueError(
                    f"{which}: registers: {value} per thread with {launch.threads} "
                    f"threads is more than an SM of {self.name} holds, {most}"
                )


@functools.lru_cache(maxsize=128)
def model(
    spec: DeviceSpec, policy: str
) -> tuple[_core.Model, dict[InitialState, _core.InitialState]]:
    """Returns the core's model of a device under a policy, and its latent states, from a cache.

    Kept, as most programs ask about one device.

    Raises:
        ValueError: no such policy, or none for this device.
    """
    try:
        found = _core.Model(spec, policy[:200])  # no name is longer, and a message need not be
    except ValueError as error:
        rows = ((policy, _core.policies()), (spec.launch_order, _core.launch_orders()))
        meant = (did_you_mean(given, [name for name, *_ in table]) for given, table in rows)
        raise ValueError(f"{error}{next(filter(None, meant), '')}") from None
    return found, {InitialState(**components): state for state, components in found.states()}
