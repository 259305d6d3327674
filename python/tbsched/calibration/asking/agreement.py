"""Whether two devices agree on every sequence that was tried."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as ListOf

from tbsched.calibration.asking.predicted import smids_until_refused, table_of
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict, predict_many
from tbsched.program.event_table import EventTable
from tbsched.program.sequence import Sequence

_AT_ONCE = 64
_Answer = list[bytes]


class Agreement:
    """Compares devices with one of them, block by block, from the first latent state of each.

    Args:
        spec: what others are compared with.
        tried: sequences that were observed.
        refused: sequences that the oracle refused.

    Attributes:
        sequences: how many were tried.
    """

    def __init__(
        self, spec: DeviceSpec, tried: Iterable[Sequence], refused: Iterable[Sequence] = ()
    ) -> None:
        # The cheap ones first: most devices that differ differ on one of them.
        sequences = sorted(tried, key=_blocks)
        self._refused = [sequence for sequence in refused if not _takes(spec, sequence)]
        self.sequences = len(sequences) + len(self._refused)
        whole, self._waiting = _by_waits(spec, sequences)
        self._tables = [
            table_of(whole[at : at + _AT_ONCE]) for at in range(0, len(whole), _AT_ONCE)
        ]
        self._answers = [smids_until_refused(spec, table) for table in self._tables]
        self._waits = _with_waits(spec, self._waiting)
        self._last = 0  # the table that told another device apart last

    def agrees(self, other: DeviceSpec) -> bool:
        """Whether the other device places every block where the first one does."""
        if any(_takes(other, sequence) for sequence in self._refused):
            return False
        order = [self._last, *(n for n in range(len(self._tables)) if n != self._last)]
        try:
            for number in order[: len(self._tables)]:
                if smids_until_refused(other, self._tables[number]) != self._answers[number]:
                    self._last = number
                    return False
            return _with_waits(other, self._waiting) == self._waits
        except ValueError:  # it refuses what the first one takes
            return False


def _blocks(sequence: Sequence) -> int:
    return sum(launch.blocks for launch in sequence.launches)


def _takes(spec: DeviceSpec, sequence: Sequence) -> bool:
    try:
        spec.check(sequence)
        predict(sequence, spec)
    except ValueError:
        return False
    return True


def _by_waits(
    spec: DeviceSpec, sequences: ListOf[Sequence]
) -> tuple[list[Sequence], list[Sequence]]:
    """Those without and with events behind a launch that is not placed whole."""
    whole: list[Sequence] = []
    waiting: list[Sequence] = []
    taken = [sequence for sequence in sequences if _is_possible(spec, sequence)]
    if taken:
        table: EventTable = table_of(taken)
        smids = smids_until_refused(spec, table)
        for sequence, smid in zip(taken, smids, strict=True):
            # Blocks of launches behind the first that waits are not among them.
            complete = len(smid) == 4 * _blocks(sequence)
            (whole if complete else waiting).append(sequence)
    return whole, waiting


def _is_possible(spec: DeviceSpec, sequence: Sequence) -> bool:
    try:
        spec.check(sequence)
    except ValueError:
        return False
    return True


def _with_waits(spec: DeviceSpec, sequences: ListOf[Sequence]) -> list[_Answer]:
    return [
        [placement.smid.tobytes() for placement in trace.placements]
        for trace in predict_many(sequences, spec, threads=2)
    ]
