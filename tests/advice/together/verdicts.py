"""Verdicts of random groups, to compare versions: a line per group, and how many of each.

``PYTHONPATH=tests python tests/advice/together/verdicts.py h200 --seed 9001 --groups 1000``
``… h200 --outsiders 2`` draws triples with two outsiders, ``--larger`` groups of four to six.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from gpu.together.groups import Group, larger_group, random_group
from tbsched.advice.together.given import held
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of
from tbsched.prediction.together.search import Question, search


def group(seed: int, number: int, spec: DeviceSpec, outsiders: int, larger: bool) -> Group:
    if larger:
        return larger_group(seed, number, spec, outsiders)
    return random_group(seed, number, spec, two_outside=outsiders == 2)


def verdict(drawn: Group, spec: DeviceSpec) -> str:
    launches, pairs = held(drawn.launches)
    members = tuple(number for number in range(len(launches)) if number not in drawn.gone)
    return search(spec, policy_of(spec, None), Question(launches, (members,), pairs)).verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--outsiders", type=int, default=1, help="of triples and larger groups")
    parser.add_argument("--larger", action="store_true", help="four to six launches")
    given = parser.parse_args()
    spec, counts = device(given.device), Counter[tuple[int, str]]()
    for number in range(given.groups):
        drawn = group(given.seed, number, spec, given.outsiders, given.larger)
        started = time.process_time()
        found = verdict(drawn, spec)
        seconds = time.process_time() - started
        print(number, len(drawn.launches), len(drawn.gone), found, f"{seconds:.4f}", flush=True)
        counts[len(drawn.gone), found] += 1
    for (outsiders, found), groups in sorted(counts.items()):
        print(f"{groups} groups with {outsiders} outsiders are {found}")


if __name__ == "__main__":
    main()
