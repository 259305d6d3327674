"""What of a drawn launch only the model knows: clusters in a partition, blocks all at once."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence as SequenceOf

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.tables import allowed_at_once
from tbsched.program.arrays import Int32Array, Int64Array
from tbsched.program.event_table import LAUNCH, EventTable
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch, Sequence


def largest_clusters(
    specs: SequenceOf[DeviceSpec],
    partitions: SequenceOf[Partition | None],
    sizes: SequenceOf[int],
) -> list[int]:
    """Returns, for each partition, the largest cluster size that all devices accept; 1: none.

    None is the whole GPU, whose GPCs may all have fewer SMs than the largest cluster.
    """
    descending = sorted({size for size in sizes if size > 1}, reverse=True)

    def largest(partition: Partition | None) -> int:
        """Returns the largest cluster size that the partition takes on all devices; 1: none."""
        for size in descending:
            alone = Sequence([Launch(size, 32, 16, cluster=size, partition=partition)])
            with contextlib.suppress(ValueError):
                for spec in specs:
                    predict(alone, spec)
                return size
        return 1

    return [largest(partition) for partition in partitions]


def most_at_once(
    specs: SequenceOf[DeviceSpec], rows: Int32Array, partitions: tuple[Partition, ...]
) -> Int64Array:
    """Returns how many blocks of each launch the driver allows if it is cooperative.

    Args:
        specs: the devices, which all must allow them.
        rows: int32 (launches, 10), the :data:`FIELDS` of each.
        partitions: the partitions by number.
    """
    cells = np.insert(rows, 0, LAUNCH, axis=1)
    table = EventTable(cells, np.arange(len(cells) + 1), partitions)
    fewest: Int64Array = np.min([allowed_at_once(table, spec) for spec in specs], axis=0)
    return fewest
