"""All that was observed, and which devices explain it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from collections.abc import Sequence as ListOf
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tbsched.calibration.asking.lab import Explained, Inconclusive, Lab, Runs
from tbsched.calibration.asking.one_sm import one_sm
from tbsched.calibration.asking.predicted import table_of
from tbsched.campaigns.oracles import THREADS
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import is_predictable, predict_many
from tbsched.prediction.tables import matching_states
from tbsched.program.sequence import Sequence

_AT_ONCE = 64
_MAX_REPEATED = 64  # sequences


class Evidence:
    """All runs of a calibration: observed placements, and the sequences that were refused.

    Args:
        observed: the runs of each sequence.
        filled: for each sequence, the blocks of each launch that one SM held.
        taken, refused: sequences of which only acceptance or refusal is known.
        quantities: measurements of timed sequences.
    """

    def __init__(
        self,
        observed: ListOf[Runs],
        filled: Mapping[Sequence, tuple[int, ...]] = MappingProxyType({}),
        taken: ListOf[Sequence] = (),
        refused: ListOf[Sequence] = (),
        quantities: ListOf[Explained] = (),
    ) -> None:
        # Cheap sequences come first: they contradict most wrong devices.
        ordered = self._observed = sorted(observed, key=_blocks)
        self._filled = filled
        self._taken, self._refused = taken, refused
        self._quantities = quantities
        self._sequences = sum(map(len, (ordered, filled, taken, refused, quantities)))
        self._parts = [
            _Part(ordered[at : at + _AT_ONCE]) for at in range(0, len(ordered), _AT_ONCE)
        ]
        self._known: dict[DeviceSpec, bool] = {}
        self._filling: dict[DeviceSpec, bool] = {}  # by device of one SM
        self._last = 0  # the part that contradicted a device last

    def add(self, observed: ListOf[Runs]) -> None:
        """Adds later observations."""
        self._sequences += len(observed)
        self._observed += observed
        self._parts.append(_Part(observed))
        self._known = {spec: False for spec, known in self._known.items() if not known}

    def __len__(self) -> int:
        """Returns the number of sequences that were run."""
        return self._sequences

    def explained_by(self, spec: DeviceSpec) -> bool:
        """Returns whether the device explains every observation, from some latent state each."""
        key = replace(spec, name="explains", provenance={})
        if key not in self._known:
            self._known[key] = self._explained(key)
        return self._known[key]

    def contradicting(self, spec: DeviceSpec) -> list[Sequence]:
        """Returns the sequences that no latent state of the device explains."""
        return [runs[0].sequence for runs in self._observed if not _Part([runs]).explained_by(spec)]

    def times_explained_by(self, spec: DeviceSpec) -> bool:
        """Returns whether the device reproduces all measurements of timed sequences."""
        return all(quantity.explained_by(spec) for quantity in self._quantities)

    def _explained(self, spec: DeviceSpec) -> bool:
        # Start with the part that contradicted the previous device: it is likely to do so again.
        """Returns whether a device explains all evidence."""
        parts = self._parts[self._last :] + self._parts[: self._last]
        if parts and not parts[0].explained_by(spec):
            return False
        if any(is_predictable(sequence, spec) for sequence in self._refused):
            return False
        if not self._all_taken(spec) or not self._fills(spec):
            return False
        for index, part in enumerate(parts[1:], 1):
            if not part.explained_by(spec):
                self._last = (self._last + index) % len(parts)
                return False
        return True

    def _all_taken(self, spec: DeviceSpec) -> bool:
        """Returns whether the device accepts every sequence that the oracle accepted."""
        try:
            for sequence in self._taken:
                spec.check(sequence)
            # Only a prediction shows whether a GPC holds a cluster.
            predict_many(
                [s for s in self._taken if s.launches[0].cluster > 1], spec, threads=THREADS
            )
        except ValueError:
            return False
        return True

    def _fills(self, spec: DeviceSpec) -> bool:
        """Returns whether one SM of the device holds as many blocks as were observed."""
        policy = "ampere" if spec.policy == "hopper" else spec.policy
        alone = replace(one_sm(spec), policy=policy)
        if alone not in self._filling:
            self._filling[alone] = self._filled_by(alone)
        return self._filling[alone]

    def _filled_by(self, alone: DeviceSpec) -> bool:
        """Returns whether a device holds as many blocks as were seen to fill the GPU."""
        try:
            traces = predict_many(list(self._filled), alone, threads=THREADS)
        except ValueError:
            return False
        return all(
            tuple(placement.placed for placement in trace.placements) == placed
            for trace, placed in zip(traces, self._filled.values(), strict=True)
        )


class _Part:
    """A batch of sequences that are checked in one call."""

    def __init__(self, observed: ListOf[Runs]) -> None:
        self._tables = [table_of([runs[0].sequence]) for runs in observed]
        self._table = table_of([runs[0].sequence for runs in observed])
        self._smids = [
            [np.concatenate([p.smid for p in trace.placements]) for trace in runs]
            for runs in observed
        ]

    def explained_by(self, spec: DeviceSpec) -> bool:
        """Returns whether the device explains one run of each sequence."""
        states = spec.initial_states()
        first = [smids[0] for smids in self._smids]
        try:
            states_found = matching_states(self._table, first, spec, spec.policy, states, THREADS)
        except ValueError:  # it refuses what the oracle took
            return False
        for index, state in enumerate(states_found):
            further_runs = self._smids[index][1:]
            table = self._tables[index]
            if state is None and not any(
                matching_states(table, [smids_of_run], spec, spec.policy, states, 1)[0] is not None
                for smids_of_run in further_runs
            ):
                return False
        return True


def _blocks(runs: Runs) -> int:
    return sum(launch.blocks for launch in runs[0].sequence.launches)


def observed(lab: Lab, spec: DeviceSpec) -> Evidence:
    """Returns all observations of a laboratory.

    Sequences that contradict the device are run again first, as noise can occur twice in the same
    way.
    """
    evidence = _evidence(lab)
    if not evidence.explained_by(spec) and (wrong := evidence.contradicting(spec)):
        lab.disagreed += 1  # so that more runs must agree
        with contextlib.suppress(Inconclusive, ValueError):
            lab.runs(wrong[:_MAX_REPEATED])
        evidence = _evidence(lab)
    return evidence


def _evidence(lab: Lab) -> Evidence:
    return Evidence(
        list(lab.tried.values()), lab.filled, list(lab.taken), list(lab.refused), lab.quantities
    )
