"""Partitions as what JSON can hold."""

from __future__ import annotations

from typing import Any

from tbsched.program.partition import Partition, partition_to_data


def partition_data(partition: Partition) -> dict[str, Any]:
    """The partition as trace files hold it."""
    return partition_to_data(partition)
