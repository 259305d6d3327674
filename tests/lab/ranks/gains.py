"""Compares what explain says that programs save without their defects with what they do save.

python gains.py OUT [PROGRAM ...]

OUT has the recordings that run.py made, with and without the defect. The predicted gain is that of
the first cause that names the defect, if all ranks do without it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from truth import TRUTH

import tbsched as tb
from tbsched.advice.explain.explanation import Explanation

_NEAR = 0.2  # of the measured gain


def explained(folder: Path, name: str) -> Explanation:
    """What is found of a program, with or without its defect."""
    files = [path for rank in (0, 1) for path in folder.glob(f"{name}-rank{rank}.json*")]
    return tb.explain(tb.load_program(files))


def step_ms(folder: Path, name: str) -> float:
    """How long a step takes without a profiler, of the rank that takes longest."""
    logs = [json.loads((folder / f"{name}-rank{rank}.log.json").read_text()) for rank in (0, 1)]
    return max(float(log["step_ms"]) for log in logs)


def profiled_ms(found: Explanation) -> float:
    """How long a step takes in the profile."""
    times = found.accounted.steps.times
    return times.length / len(times.begin) / 1e6 if len(times.begin) else float("nan")


def main() -> None:
    """Prints a row per program, and how many are near."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or [*TRUTH]
    near = 0
    print(f"{'program':16}{'measured':>10}{'profiled':>10}{'predicted':>10}  ms a step")
    for name in names:
        rank, words = TRUTH[name]
        bad, good = explained(folder, f"{name}-bad"), explained(folder, f"{name}-good")
        measured = step_ms(folder, f"{name}-bad") - step_ms(folder, f"{name}-good")
        place, root = next(
            (place, root)
            for place, root in enumerate(bad.roots)
            if rank in (None, root.gpu)
            and any(word.lower() in f"{root.cause} {root.by}".lower() for word in words)
        )
        predicted = float("nan")
        if root.saves_on_all is not None:
            predicted = 1e3 * root.saves_on_all / len(bad.accounted.steps.times.begin)
        near += abs(predicted - measured) <= _NEAR * abs(measured)
        profiled = profiled_ms(bad) - profiled_ms(good)
        print(
            f"{name:16}{measured:10.2f}{profiled:10.2f}{predicted:10.2f}  "
            f"{place + 1}, {root.cause}: {root.by[:60]}"
        )
    print(f"{near} of {len(names)} within 20 %")


if __name__ == "__main__":
    main()
