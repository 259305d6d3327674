"""How long a default campaign on a GPU takes to catch each ablation; the model agrees.

python tests/quality/ablations.py --out report             # on a GPU
python tests/quality/ablations.py --out report --oracle h200   # a model plays it
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import tbsched as tb
from tbsched.campaigns import ModelGpu
from tbsched.hardware.catalogue import ablations, shows_in
from tbsched.launcher.observe import Gpu
from tbsched.traces.oracle import Oracle

# Only timed sequences show them, and a default campaign draws none.
TIMED = {
    name
    for name in ablations()
    if {"conditional", "duration", "host_function", "value"} & shows_in(name)
}


def caught(oracle: Oracle, predictor: str, seconds: float, seed: int) -> dict[str, Any]:
    """One campaign, up to the first disagreement that shows twice."""
    report = tb.fuzz(
        oracle, predictor, max_seconds=seconds, max_examples=10**6, shrink_seconds=0, seed=seed,
        progress=False,
    )  # fmt: skip
    return {
        "predictor": predictor,
        "seconds": round(report.seconds, 3),
        "sequences": report.examples,
        "launches": report.launches,
        "counterexamples": [repr(found.sequence) for found in report.counterexamples],
        "unstable": len(report.unstable),
        "refused": dict(report.coverage.refused),
        "decided": report.coverage.decided,
    }


def main() -> int:
    """Writes ``ablations.json``; 1 if an ablation is missed or the model itself disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each campaign, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--predictor", default="h200", help="the device whose ablations are made")
    parser.add_argument("--oracle", default="gpu", help="gpu, or a device whose model plays it")
    parser.add_argument("--out", type=Path, required=True, help="folder for ablations.json")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = []
    with contextlib.ExitStack() as opened:
        oracle: Oracle
        if arguments.oracle == "gpu":
            oracle = opened.enter_context(Gpu(0))
        else:
            oracle = ModelGpu(arguments.oracle)
        predictors = [f"{arguments.predictor}-{name}" for name in ablations() if name not in TIMED]
        for predictor in (*predictors, arguments.predictor):
            row = caught(oracle, predictor, arguments.seconds, arguments.seed)
            rows.append(row)
            found = "caught" if row["counterexamples"] else "agrees"
            print(
                f"{predictor:<36} {found} {row['seconds']:7.2f} s {row['sequences']:7} sequences, "
                f"{row['unstable']} unstable",
                flush=True,
            )
    (arguments.out / "ablations.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    *ablated, whole = rows
    missed = [row["predictor"] for row in ablated if not row["counterexamples"]]
    return int(bool(missed or whole["counterexamples"]))


if __name__ == "__main__":
    sys.exit(main())
