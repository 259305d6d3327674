"""Predicts a timed sequence over several GPUs."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tbsched import _core
from tbsched.hardware.catalogue import device as device_of
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls
from tbsched.prediction.model import known_state, policy_of, prepared
from tbsched.prediction.program_device import with_connections
from tbsched.prediction.residents import residents_of
from tbsched.program.checks import items
from tbsched.program.events.streams import MAX_GPUS
from tbsched.program.sequence import Sequence
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.residents import Residents


class SeveralGpus:
    """A device, a policy and a latent state for each GPU, checked."""

    def __init__(
        self, devices: Iterable[str | os.PathLike[str] | DeviceSpec], policy: str | None,
        initial_state: InitialState | None, connections: int | None,
    ) -> None:  # fmt: skip
        self.specs = tuple(
            with_connections("predict", device_of(device), connections)
            for device in items("predict", "device", devices)
        )
        if not 1 <= len(self.specs) <= MAX_GPUS:
            raise ValueError(
                f"predict.device: {len(self.specs)} devices; 1 to {MAX_GPUS} are needed"
            )
        self._policies = tuple(policy_of(spec, policy) for spec in self.specs)
        self._states: list[InitialState] = []
        self.infos: list[DeviceInfo] = []
        for spec, own_policy in zip(self.specs, self._policies, strict=True):
            _, info, states = prepared(spec, own_policy)
            if initial_state is not None:
                known_state(spec, own_policy, initial_state)
            self._states.append(next(iter(states)) if initial_state is None else initial_state)
            self.infos.append(info)

    def check(self, seq: Sequence) -> None:
        """Checks that each GPU can run its part of a sequence, and has a device.

        Raises:
            ValueError: names the launch or the GPU, and the limit.
        """
        if seq.gpus > len(self.specs):
            raise ValueError(
                f"predict.device: {len(self.specs)} devices, but the sequence has work of GPU "
                f"{seq.gpus - 1}; give a device for each GPU"
            )
        first = self.specs[0]
        if all(spec is first or spec == first for spec in self.specs):
            first.check(seq)
            return
        for gpu, spec in enumerate(self.specs):
            spec.check(seq, gpu)

    def _models(self) -> list[tuple[_core.Model, _core.InitialState]]:
        """Returns the core's model and initial state of each GPU."""
        models = []
        for spec, policy, state in zip(self.specs, self._policies, self._states, strict=True):
            model, _, states = prepared(spec, policy)
            models.append((model, states[state]))
        return models

    def rows(self, seq: Sequence, calls: Calls) -> Any:
        """Returns the core's prediction of a sequence on these GPUs, as rows for a trace."""
        return _core.predict_gpus(self._models(), _core.Sequence(seq.events), *calls)

    def residents(self, seq: Sequence, calls: Calls, at_ns: int, gpu: int) -> Residents:
        """Returns what every SM of one GPU holds at a time in ns."""
        models = self._models()
        events = _core.Sequence(seq.events)
        core_snapshot = _core.snapshot_of_gpu_at(models, events, *calls, gpu, at_ns)
        on_gpu = np.flatnonzero(np.array(seq.launch_gpus) == gpu)
        # The core numbers the launches of the GPU alone.
        (launch, *blocks), (of_piece, *pieces), configured, turns, *needs = core_snapshot
        wide = []
        for need in needs:
            whole = np.zeros(len(seq.launches), np.int32)
            whole[on_gpu] = need
            wide.append(whole)
        snapshot = (
            (on_gpu[launch].astype(np.int32), *blocks),
            (on_gpu[of_piece].astype(np.int32), *pieces), configured, turns, *wide,
        )  # fmt: skip
        return residents_of(
            self.specs[gpu], models[gpu][0], self.infos[gpu], seq, snapshot, at_ns / 1e9
        )

    def replay(self, seq: Sequence, calls: Calls) -> functools.partial[Residents]:
        """Returns a function of nanoseconds and GPU that gives residents: ``Trace.replay``."""
        return functools.partial(self.residents, seq, calls)
