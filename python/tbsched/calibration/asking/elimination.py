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
_DRAWN, _LEAST_DRAWN, _ASKED, _PATIENCE = 128, 24, 6, 3
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
    """Runs the sequences that split the devices most, until no drawn sequence splits them."""
    rng = np.random.default_rng(seed)
    left = Remaining(list(devices))
    idle = 0
    while idle < patience and len(left.devices) > 0:
        drawn = [draw(rng) for _ in range(_draws(left.devices, _ASKED))]
        predicted = view.predict(left.devices, drawn, 0)
        telling = sorted(range(len(drawn)), key=lambda number: _largest_class(predicted, number))[
            :_ASKED
        ]
        if len(left.devices) > 1 and _largest_class(predicted, telling[0]) == len(left.devices):
            idle += 1
            continue
        # Predictions are comparable only up to the first launch that a device does not place whole.
        asked = [_cut(drawn[number], predicted, number) for number in telling]
        shown = view.observe(lab, asked)
        left.asked += len(asked)
        before = left.devices
        left.devices = [
            device
            for device, seen in zip(before, predicted, strict=True)
            if all(
                seen[number][: len(observed)] == observed
                for number, observed in zip(telling, shown, strict=True)
            )
            or _agrees(device, asked, shown, view)
        ]
        lab.eliminated += len(before) - len(left.devices)
        idle += len(left.devices) == len(before)
        if not left.devices:
            left.misfit = _shortest(asked, telling, predicted, shown)
    return left


def _draws(devices: ListOf[DeviceSpec], asked: int) -> int:
    """Returns how many sequences to draw: fewer if many devices must predict them.

    The first round eliminates most devices. One device alone is only checked, so it gets exactly
    as many draws as are run.
    """
    if len(devices) == 1:
        return asked
    return max(min(_DRAWN, _PREDICTED // len(devices)), _LEAST_DRAWN)


def _agrees(device: DeviceSpec, asked: ListOf[Sequence], shown: Answers, view: View) -> bool:
    """Returns whether the device gives these answers, each from some latent state."""
    open_ones = list(range(len(asked)))
    for state in range(len(device.initial_states())):
        (seen,) = view.predict([device], [asked[number] for number in open_ones], state)
        open_ones = [
            number
            for number, answer in zip(open_ones, seen, strict=True)
            if answer[: len(shown[number])] != shown[number]
        ]
        if not open_ones:
            return True
    return False


def by_every_block(lab: Lab, left: Remaining, draw: Draw, seed: int) -> Remaining:
    """Eliminates further devices by the SM of every single block.

    A device stays if some latent state of it puts every block on the SM where it was observed.
    Draws that split no devices are run as well, since all of them may be wrong.
    """
    rng = np.random.default_rng(seed)
    devices, asked, idle, misfit = left.devices, left.asked, 0, left.misfit
    while devices and idle < _EXACT_PATIENCE:
        drawn = [draw(rng) for _ in range(_draws(devices, _ASKED_EXACTLY))]
        events = table_of(drawn)
        predicted = [until_refused(device, events) for device in devices]
        answers = [[tuple(p.tobytes() for p in each) for each in device] for device in predicted]
        telling = sorted(range(len(drawn)), key=lambda number: _largest_class(answers, number))
        idle += _largest_class(answers, telling[0]) == len(devices)
        chosen = [_cut(drawn[number], answers, number) for number in telling[:_ASKED_EXACTLY]]
        runs = lab.runs(chosen)
        asked += len(runs)
        before, devices = devices, [each for each in devices if explains(each, runs)]
        lab.eliminated += len(before) - len(devices)
        idle += len(devices) == len(before) and idle == 0
        if not devices:
            misfit = min(_not_explained(before, runs), key=len)
    return Remaining(devices, asked, misfit)


def explains(device: DeviceSpec, observed: ListOf[Runs]) -> bool:
    """Returns whether the device explains one run of each sequence, block by block, from some
    latent state."""
    states = list(device.initial_states())
    return all(
        any(matching_state(trace, device, None, states) is not None for trace in runs)
        for runs in observed
    )


def _not_explained(devices: ListOf[DeviceSpec], observed: ListOf[Runs]) -> list[Sequence]:
    """Returns the sequences that contradict the most devices."""
    wrong = [sum(not explains(device, [runs]) for device in devices) for runs in observed]
    most = max(wrong)
    return [runs[0].sequence for runs, count in zip(observed, wrong, strict=True) if count == most]


def _largest_class(predicted: ListOf[ListOf[tuple[Shown, ...]]], number: int) -> int:
    shortest = min(len(of_device[number]) for of_device in predicted)
    classes = Counter(of_device[number][:shortest] for of_device in predicted)
    return classes.most_common(1)[0][1]


def _cut(sequence: Sequence, predicted: ListOf[ListOf[tuple[Shown, ...]]], number: int) -> Sequence:
    """Returns the sequence up to the last launch that all devices predict."""
    launches = min(len(of_device[number]) for of_device in predicted)
    seen = 0
    for position, event in enumerate(sequence.events):
        seen += isinstance(event, Launch)
        if seen == launches:
            return sequence[: position + 1]
    return sequence


def _shortest(
    asked: ListOf[Sequence],
    telling: ListOf[int],
    predicted: ListOf[ListOf[tuple[Shown, ...]]],
    shown: ListOf[tuple[Shown, ...]],
) -> Sequence:
    """Returns the shortest sequence that no device predicts right, cut behind the wrong launch."""
    wrong = []
    for sequence, number, observed in zip(asked, telling, shown, strict=True):
        agree = max(_common(of_device[number], observed) for of_device in predicted)
        if agree == len(observed):
            continue
        seen = 0
        for position, event in enumerate(sequence.events):
            seen += isinstance(event, Launch)
            if seen == agree + 1:
                wrong.append(sequence[: position + 1])
                break
    # If every sequence is right on some device, but no device on all: the shortest sequence.
    return min(wrong or asked, key=len)


def _common(one: tuple[Shown, ...], other: tuple[Shown, ...]) -> int:
    """Returns how many first launches of two answers are alike."""
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same
