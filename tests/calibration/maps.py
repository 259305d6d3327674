"""How many maps of hidden boards are found, where the rules are known; a model plays the boards.

python tests/calibration/maps.py --devices 1000 --seed 1000
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

import tbsched as tb
from calibration.hidden import Hidden, drawn, effective
from tbsched.calibration.asking.lab import Inconclusive
from tbsched.calibration.boards.map import measured

MOST_SMS = 132


def outcome(spec: tb.DeviceSpec) -> str:
    """Whether the map was found, and whether the rules predict what showed it."""
    unknown = replace(spec, gpcs=(), sm_preference=tuple(range(spec.sms)))
    try:
        found = measured(Hidden(spec), unknown)
    except Inconclusive:
        return "not told"
    right = found.values["sm_preference"] == spec.sm_preference and (
        spec.max_cluster == 1 or found.values["gpcs"] == effective(spec, "topology.gpcs")
    )
    return f"{'right' if right else 'WRONG'}, {'noticed' if found.wrong else 'agrees'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first device")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.devices)
    counts = Counter(outcome(drawn(seed, MOST_SMS)) for seed in seeds)
    for words, count in counts.most_common():
        print(f"{count:6} {words}")


if __name__ == "__main__":
    main()
