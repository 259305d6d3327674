"""Elimination of candidate devices by sequences on which their predictions differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from collections.abc import Sequence as ListOf
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tbsched.calibration.asking.lab import Lab, Runs
from tbsched.calibration.asking.predicted import table_of, until_refused
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import matching_state
from tbsched.program.sequence import Launch, Sequence

# Result of one launch, compared between candidates and the oracle.
Shown: TypeAlias = Hashable
# For each sequence, the results of its launches.
Answers: TypeAlias = list[tuple[Shown, ...]]
Draw: TypeAlias = Callable[[np.random.Generator], Sequence]


@dataclass(frozen=True, slots=True)
class View:
    """How sequences are predicted and observed.

    Attributes:
        predict: returns the answers of each device, from the latent state with a given number.
        observe: returns the answers of the oracle.
    """

    predict: Callable[[ListOf[DeviceSpec], ListOf[Sequence], int], list[Answers]]
    observe: Callable[[Lab, ListOf[Sequence]], Answers]


@dataclass(slots=True)
class Remaining:
    """Candidates that remain after elimination.

    Attributes:
        devices: those that agree with every observation.
        asked: how many sequences the oracle ran.
        misfit: if none is left, the shortest sequence that contradicted the last candidates.
    """

    devices: list[DeviceSpec]
    asked: int = 0
    misfit: Sequence | None = None


# Sequences drawn per round (most, least), those of them that the oracle runs, and the number of
# rounds without an elimination that end the search.
_DRAWN, _MIN_DRAWN, _ASKED, _PATIENCE = 128, 24, 6, 3
_PREDICTED = 1024  # predictions (devices x draws) in a round, if that leaves enough draws
_ASKED_EXACTLY, _EXACT_PATIENCE = 12, 2


def eliminate(
    lab: Lab,
    devices: ListOf[DeviceSpec],
    draw: Draw,
    view: View,
    seed: int,
    patience: int = _PATIENCE,
) -> Remaining:
    """Eliminates devices that contradict what sequences show, and returns those that remain.

    Of the sequences drawn, those run that split the devices most: on which most of them differ. It
    ends when for a while nothing that is drawn splits them.
    """
    rng = np.random.default_rng(seed)
    remaining = Remaining(list(devices))
    idle = 0
    while idle < patience and len(remaining.devices) > 0:
        drawn = [draw(rng) for _ in range(_draws(remaining.devices, _ASKED))]
        predicted = view.predict(remaining.devices, drawn, 0)
        telling = sorted(range(len(drawn)), key=lambda index: _largest_class(predicted, index))[
            :_ASKED
        ]
        if len(remaining.devices) > 1 and _largest_class(predicted, telling[0]) == len(
            remaining.devices
        ):
            idle += 1
            continue
        # Predictions are comparable only up to the first launch that a device does not place whole.
        sequences = [_cut(drawn[index], predicted, index) for index in telling]
        shown = view.observe(lab, sequences)
        remaining.asked += len(sequences)
        before = remaining.devices
        remaining.devices = [
            device
            for device, answers in zip(before, predicted, strict=True)
            if all(
                answers[index][: len(observed)] == observed
                for index, observed in zip(telling, shown, strict=True)
            )
            or _agrees(device, sequences, shown, view)
        ]
        lab.eliminated += len(before) - len(remaining.devices)
        idle += len(remaining.devices) == len(before)
        if not remaining.devices:
            remaining.misfit = _shortest(sequences, telling, predicted, shown)
    return remaining


def _draws(devices: ListOf[DeviceSpec], runs_per_round: int) -> int:
    """Returns how many sequences to draw in a round: fewer if many devices must predict them.

    The first round eliminates most devices. One device alone is only checked, so it gets exactly
    as many draws as are run.
    """
    if len(devices) == 1:
        return runs_per_round
    return max(min(_DRAWN, _PREDICTED // len(devices)), _MIN_DRAWN)


def _agrees(device: DeviceSpec, sequences: ListOf[Sequence], shown: Answers, view: View) -> bool:
    """Returns whether the device predicts, for each sequence from some latent state, what was
    observed: ``shown``."""
    open_indices = list(range(len(sequences)))
    for state in range(len(device.initial_states())):
        (answers,) = view.predict([device], [sequences[index] for index in open_indices], state)
        open_indices = [
            index
            for index, answer in zip(open_indices, answers, strict=True)
            if answer[: len(shown[index])] != shown[index]
        ]
        if not open_indices:
            return True
    return False


def by_every_block(lab: Lab, remaining: Remaining, draw: Draw, seed: int) -> Remaining:
    """Eliminates devices that put a block on another SM than it was observed on, and returns those
    that remain.

    A device stays if some latent state of it puts every block on the SM where it was observed.
    Draws that split no devices are run as well, since all of them may be wrong.
    """
    rng = np.random.default_rng(seed)
    devices, sequences_run, idle, misfit = remaining.devices, remaining.asked, 0, remaining.misfit
    while devices and idle < _EXACT_PATIENCE:
        drawn = [draw(rng) for _ in range(_draws(devices, _ASKED_EXACTLY))]
        events = table_of(drawn)
        predicted = [until_refused(device, events) for device in devices]
        answers = [
            [tuple(p.tobytes() for p in candidate) for candidate in device] for device in predicted
        ]
        telling = sorted(range(len(drawn)), key=lambda index: _largest_class(answers, index))
        idle += _largest_class(answers, telling[0]) == len(devices)
        chosen = [_cut(drawn[index], answers, index) for index in telling[:_ASKED_EXACTLY]]
        runs = lab.runs(chosen)
        sequences_run += len(runs)
        before, devices = devices, [candidate for candidate in devices if explains(candidate, runs)]
        lab.eliminated += len(before) - len(devices)
        idle += len(devices) == len(before) and idle == 0
        if not devices:
            misfit = min(_not_explained(before, runs), key=len)
    return Remaining(devices, sequences_run, misfit)


def explains(device: DeviceSpec, observed: ListOf[Runs]) -> bool:
    """Returns whether the device explains one run of each sequence, block by block, from some
    latent state."""
    states = list(device.initial_states())
    return all(
        any(matching_state(trace, device, None, states) is not None for trace in runs)
        for runs in observed
    )


def _not_explained(devices: ListOf[DeviceSpec], observed: ListOf[Runs]) -> list[Sequence]:
    """Returns the sequences that contradict the most devices, the same number each."""
    wrong = [sum(not explains(device, [runs]) for device in devices) for runs in observed]
    max_wrong = max(wrong)
    return [
        runs[0].sequence for runs, count in zip(observed, wrong, strict=True) if count == max_wrong
    ]


def _largest_class(predicted: ListOf[ListOf[tuple[Shown, ...]]], index: int) -> int:
    shortest = min(len(of_device[index]) for of_device in predicted)
    classes = Counter(of_device[index][:shortest] for of_device in predicted)
    return classes.most_common(1)[0][1]


def _cut(sequence: Sequence, predicted: ListOf[ListOf[tuple[Shown, ...]]], index: int) -> Sequence:
    """Returns the sequence up to the last launch that all devices predict."""
    launches = min(len(of_device[index]) for of_device in predicted)
    launches_before = 0
    for position, event in enumerate(sequence.events):
        launches_before += isinstance(event, Launch)
        if launches_before == launches:
            return sequence[: position + 1]
    return sequence


def _shortest(
    sequences: ListOf[Sequence],
    telling: ListOf[int],
    predicted: ListOf[ListOf[tuple[Shown, ...]]],
    shown: ListOf[tuple[Shown, ...]],
) -> Sequence:
    """Returns the shortest sequence that no device predicts right, up to the first launch that is
    wrong."""
    wrong = []
    for sequence, index, observed in zip(sequences, telling, shown, strict=True):
        agree = max(_common(of_device[index], observed) for of_device in predicted)
        if agree == len(observed):
            continue
        launches_before = 0
        for position, event in enumerate(sequence.events):
            launches_before += isinstance(event, Launch)
            if launches_before == agree + 1:
                wrong.append(sequence[: position + 1])
                break
    # If every sequence is right on some device, but no device on all: the shortest sequence.
    return min(wrong or sequences, key=len)


def _common(a_answer: tuple[Shown, ...], b_answer: tuple[Shown, ...]) -> int:
    """Returns how many launches at the beginning of two answers are equal."""
    common = 0
    for a, b in zip(a_answer, b_answer, strict=False):
        if a != b:
            break
        common += 1
    return common
