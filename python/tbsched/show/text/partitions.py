"""Partitions as text."""

from __future__ import annotations

from tbsched.program.partition import Partition
from tbsched.show.words import counted, sms_words


def partition_short(partition: Partition) -> str:
    """How many SMs it has, and which part of which split it is."""
    words = counted(len(partition), "SM")
    if partition.split is None:
        return words
    part = "what is left over" if partition.group is None else f"group {partition.group}"
    return f"{words}, {part} of {partition.split}"


def partition_text(partition: Partition) -> str:
    """Its SMs."""
    return f"{partition_short(partition)}\nSM {sms_words(partition.sms) or 'none'}"
