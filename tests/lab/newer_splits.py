"""Splits the SMs of a GPU by cuDevSmResourceSplit, which comes with CUDA 13.1: unequal groups.

    python tests/lab/newer_splits.py --out DIR

Needs a driver from 590 on, and cuda-core (``pip install cuda-core``). Writes
``DIR/splits.jsonl``: in each line what was asked for, and how many SMs each group and the remainder
have, or the refusal. Nothing runs on the GPU. No such driver was at hand: the script has asked
none yet.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lab.script import parse


def questions(sms: int) -> Iterator[dict[str, Any]]:
    """Yields the options of splits: one group of each size, and pairs of unequal ones."""
    sizes = [*range(1, 33), *range(40, sms + 1, 8), sms]
    for count, backfill in itertools.product(sizes, (False, True)):
        yield {"count": [count], "backfill": [backfill]}
    for first, second in itertools.product((8, 16, 40, 66), (8, 24, 66, sms - 66)):
        for together in (None, 2, 8, 16):
            yield {"count": [first, second], "coscheduled_sm_count": [together, together]}
    for together in (2, 4, 8, 16, 18):  # the driver finds the size
        yield {"count": [None], "coscheduled_sm_count": [together]}


def main() -> int:
    """Asks the driver, and writes a line for each answer."""
    output = parse(argparse.ArgumentParser(description=__doc__)).out / "splits.jsonl"
    try:
        from cuda.core import Device, SMResourceOptions
    except ImportError as error:
        print(f"newer_splits: {error}; pip install cuda-core", file=sys.stderr)
        return 2
    try:
        device = Device()
        every = device.resources.sm
    except Exception as error:
        print(f"newer_splits: no GPU whose SMs can be split: {error}", file=sys.stderr)
        return 2
    with output.open("x", encoding="utf-8") as file:
        for asked in questions(every.sm_count):
            line: dict[str, Any] = {"gpu": device.name, "sms": every.sm_count, "asked": asked}
            try:
                groups, rest = every.split(SMResourceOptions(**asked), dry_run=True)
                line |= {"groups": [each.sm_count for each in groups], "rest": rest.sm_count}
            except Exception as error:
                line["refused"] = str(error)
            file.write(f"{json.dumps(line)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
