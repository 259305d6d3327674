"""What was found out about the instructions of a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tbsched import storage
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.shown import Shown
from tbsched.sm.characterization.figures import Figures, figures
from tbsched.sm.characterization.placing import known_as
from tbsched.sm.characterization.runs import Run, load_runs
from tbsched.traces.placement import DeviceInfo


@dataclass(frozen=True, slots=True, repr=False)
class Characterization(Shown):
    """The figures of each opcode. Prints as a table.

    Attributes:
        device: the GPU, as it says of itself.
        figures: of each opcode, in the order in which they were asked for.

    Example:
        >>> found = tb.sm.load_characterization("h200.jsonl")  # doctest: +SKIP
        >>> found["fp64.fma"].least_stall  # doctest: +SKIP
        8
    """

    device: Mapping[str, Any]
    figures: tuple[Figures, ...]

    def __getitem__(self, opcode: str) -> Figures:
        for figure in self.figures:
            if figure.opcode == opcode:
                return figure
        raise KeyError(opcode)

    def __iter__(self) -> Iterator[str]:
        return (figure.opcode for figure in self.figures)

    @property
    def runs(self) -> int:
        """How many runs the figures come from."""
        return sum(figure.runs for figure in self.figures)


def characterization(
    spec: DeviceSpec, device: Mapping[str, Any], runs: Iterable[Run], reasons: Mapping[str, str]
) -> Characterization:
    """Returns figures from runs; ``reasons``: by name, why an opcode has none."""
    listed = list(runs)
    rows = (
        figures(name, listed, spec.processing_blocks, spec.sms, reason)
        for name, reason in reasons.items()
    )
    return Characterization(dict(device), tuple(rows))


def load_characterization(
    path: str | os.PathLike[str], device: str | os.PathLike[str] | DeviceSpec | None = None
) -> Characterization:
    """Returns the figures of runs that were recorded before; no GPU is needed.

    Args:
        path: the file that ``raw`` of :func:`tbsched.sm.characterize` kept.
        device: the GPU that it is of; None: the shipped one of its name. Its numbers of SMs and
            of processing blocks are read.

    Raises:
        FileNotFoundError, ValueError: no such file, another one, or of an unknown GPU.

    Example:
        >>> tb.sm.load_characterization("h200.jsonl")["fp32.fma"].throughput  # doctest: +SKIP
        Measured(value=127.4, low=127.4, high=127.5, runs=3)
    """
    about, runs = load_runs(path)
    try:
        info = DeviceInfo(about["name"], about["sms"], {})
    except KeyError as error:
        raise ValueError(f"{storage.shown(storage.as_path(path))}: device has no {error}") from None
    spec = known_as(info) if device is None else find_device(device)
    names = dict.fromkeys(run.key.opcode for run in runs)
    return characterization(spec, about, runs, dict.fromkeys(names, ""))
