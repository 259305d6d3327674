"""What is left of several devices once sequences have been asked on which they differ."""

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

# What a sequence shows, to be compared.
Shown: TypeAlias = Hashable
# Of each sequence, what each of its launches shows.
Answers: TypeAlias = list[tuple[Shown, ...]]
Draw: TypeAlias = Callable[[np.random.Generator], Sequence]


@dataclass(frozen=True, slots=True)
class View:
    """How sequences are predicted and observed.

    Attributes:
        predict: of each device, what it shows from the latent state with a number.
        observe: what the oracle shows.
    """

    predict: Callable[[ListOf[DeviceSpec], ListOf[Sequence], int], list[Answers]]
    observe: Callable[[Lab, ListOf[Sequence]], Answers]


@dataclass(slots=True)
class Left:
    """What remained.

    Attributes:
        devices: those that agree with every observation.
        asked: how many sequences were asked.
        misfit: if none is left, the shortest sequence that the last ones were wrong about.
    """

    devices: list[DeviceSpec]
    asked: int = 0
    misfit: Sequence | None = None


# Of so many drawn sequences those that tell most are asked; several draws that tell nothing end it.
_DRAWN, _LEAST_DRAWN, _ASKED, _PATIENCE = 128, 24, 6, 3
_PREDICTED = 1024  # in each round, as far as that leaves enough draws
_ASKED_EXACTLY, _EXACT_PATIENCE = 12, 2


def eliminate(
    lab: Lab,
    devices: ListOf[DeviceSpec],
    draw: Draw,
    view: View,
    seed: int,
    patience: int = _PATIENCE,
) -> Left:
    """Asks sequences that split the devices most, until none is drawn that splits them."""
    rng = np.random.default_rng(seed)
    left = Left(list(devices))
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
        # Behind the first launch that one of them does not place whole, others would differ.
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
        lab.struck += len(before) - len(left.devices)
        idle += len(left.devices) == len(before)
        if not left.devices:
            left.misfit = _shortest(asked, telling, predicted, shown)
    return left


def _draws(devices: ListOf[DeviceSpec], asked: int) -> int:
    """The fewer, the more devices predict them: most are struck out at once.

    One device alone is only checked: no draw says more than another.
    """
    if len(devices) == 1:
        return asked
    return max(min(_DRAWN, _PREDICTED // len(devices)), _LEAST_DRAWN)


def _agrees(device: DeviceSpec, asked: ListOf[Sequence], shown: Answers, view: View) -> bool:
    """Whether each sequence shows this from some latent state of the device."""
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


def by_every_block(lab: Lab, left: Left, draw: Draw, seed: int) -> Left:
    """Goes on with sequences that split the devices by which block is where.

    A device stays if some latent state of it has every block where it was observed. Of draws that
    split none, some are asked, too.
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
        lab.struck += len(before) - len(devices)
        idle += len(devices) == len(before) and idle == 0
        if not devices:
            misfit = min(_not_explained(before, runs), key=len)
    return Left(devices, asked, misfit)


def explains(device: DeviceSpec, observed: ListOf[Runs]) -> bool:
    """Whether, of each sequence, latent states of the device have every block of one of its runs
    where it was observed."""
    states = list(device.initial_states())
    return all(
        any(matching_state(trace, device, None, states) is not None for trace in runs)
        for runs in observed
    )


def _not_explained(devices: ListOf[DeviceSpec], observed: ListOf[Runs]) -> list[Sequence]:
    """What the most devices are wrong about."""
    wrong = [sum(not explains(device, [runs]) for device in devices) for runs in observed]
    most = max(wrong)
    return [runs[0].sequence for runs, count in zip(observed, wrong, strict=True) if count == most]


def _largest_class(predicted: ListOf[ListOf[tuple[Shown, ...]]], number: int) -> int:
    shortest = min(len(of_device[number]) for of_device in predicted)
    classes = Counter(of_device[number][:shortest] for of_device in predicted)
    return classes.most_common(1)[0][1]


def _cut(sequence: Sequence, predicted: ListOf[ListOf[tuple[Shown, ...]]], number: int) -> Sequence:
    """The sequence up to the last launch that all of them predict."""
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
    """The shortest sequence on which the most devices disagreed, up to where they did."""
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
    # Where each sequence has some device that is right, none of them has all: the shortest one.
    return min(wrong or asked, key=len)


def _common(one: tuple[Shown, ...], other: tuple[Shown, ...]) -> int:
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same
