"""Which hardware queue each launch takes, as CUPTI reports its channel.

The launches went to 40 streams. Those of the H100 ran one at a time, so that all queues were empty.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import replace

from helpers import ROOT
from lab.oracles.scores import Issued, choices
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Launch, Sequence, Synchronize

FOLDER = ROOT / "tests" / "traces" / "channels"
RECORDING = json.loads((FOLDER / "h100.json").read_text())
H100 = replace(device("h100"), hardware_queues=RECORDING["connections"])
STREAMS, CHANNELS = zip(*RECORDING["launches"], strict=True)


def queues(spec: DeviceSpec) -> list[int | None]:
    each = [
        (Launch(1, 32, 32, stream=stream, duration=1e-5, non_blocking=True), Synchronize())
        for stream in STREAMS
    ]
    trace = predict(Sequence([event for pair in each for event in pair]), spec, host=0.0)
    return [placement.hardware_queue for placement in trace]


def test_queues_are_the_channels() -> None:
    # Channels have other numbers than queues.
    assert len(set(zip(queues(H100), CHANNELS, strict=True))) == len(set(CHANNELS)) == 8


def test_with_one_front_end_they_are_not() -> None:
    one = queues(replace(H100, front_ends=1))
    assert len(set(zip(one, CHANNELS, strict=True))) > 8


def test_channels_are_chosen_by_the_rule_while_others_wait() -> None:
    seen = json.loads(lzma.decompress((FOLDER / "h200.json.xz").read_bytes()))
    launches = [Issued(stream, call, start, at) for stream, at, call, start in seen["launches"]]
    assert all(choices(launches, seen["connections"]))
