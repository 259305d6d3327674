"""Do random programs over several GPUs hang, and begin as many blocks, as predicted before?

    programs.py prepare FILE --out DIR --seed N --count N [--device h200] [--gpus 2]
    programs.py run FILE --out DIR --seconds S

``prepare`` needs no GPU: it draws programs, half of them near the limit, predicts them, and writes
FILE. In every other program blocks of a launch stay for different times. A prediction is *sure* if
it is the same with hosts that start or call a little later, and with blocks that do not end at the
same instant. ``run`` runs each program twice, and
writes ``several_programs.json``, the score with whole programs that are not as predicted, and
``several_programs.jsonl.xz``, all runs. Exit status 1 if a sure prediction is wrong where both runs
agree.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.script import parse_draw
from lab.several.drawn import COLUMNS, Row, is_call, random_program, sequence_of, with_delays
from lab.several.runs import (
    CONNECTIONS,
    INTERVAL,
    Found,
    command_line,
    device_of,
    observed,
    predicted,
    prepare,
    prepared,
    recording,
)

LATE_NS = 40_000  # about what hosts of two GPUs start apart
UNEVEN = 0.05  # share by which blocks of a launch stay longer
UNEVENS = 3  # how often that is drawn
AGAIN = 4  # more runs of a program that is not as predicted


def main() -> int:
    """Prepares or runs."""
    arguments = parse_draw(command_line(__doc__), "programs", 1000, 120)
    if arguments.what == "prepare":
        prepare(make, arguments)
        return 0
    return run(prepared(arguments), arguments.out, arguments.seconds)


def make(asked: tuple[int, int, str, int]) -> Found:
    """A program with what is predicted of it."""
    seed, number, device, gpus = asked
    spec = device_of(device)
    near, spread = bool(number % 2), bool(number // 2 % 2)
    rows = random_program(seed, number, spec, gpus=gpus, near=near)
    found = {"number": number, "near": near, "spread": spread, "rows": rows}
    first = _predict(rows, spread, device, gpus, INTERVAL)
    others = [_predict(rows, spread, device, gpus, interval) for interval in (4e-6, 1.2e-5)]
    for gpu in range(gpus):
        firsts = [k for k, row in enumerate(rows) if row[0] == gpu][:1]
        late = with_delays(rows, [LATE_NS * (k in firsts) for k in range(len(rows))])
        others.append(_predict(late, spread, device, gpus, INTERVAL))
    for rng in () if spread else map(random.Random, range(UNEVENS)):
        stay = [
            [round(row[-1] * (1 + UNEVEN * rng.random())) for _ in range(row[2])]
            for row in rows
            if not is_call(row)
        ]
        others.append(_predict(rows, spread, device, gpus, INTERVAL, stay))
    return {**found, "predicted": first, "sure": all(other == first for other in others)}


def _predict(
    rows: list[Row],
    spread: bool,
    device: str,
    gpus: int,
    interval: float,
    stay: list[list[int]] | None = None,
) -> Found:
    program = sequence_of(rows, spread, stay)
    devices = [device_of(device)] * gpus
    return predicted(
        tb.predict(program, devices, launch_interval=interval, connections=CONNECTIONS)
    )


def run(given: Found, out: Path, seconds: float) -> int:
    """Runs each program twice, for so many seconds, and scores."""
    gpus, begin = given["gpus"], time.monotonic()
    counts: Counter[str] = Counter()
    wrong: list[Found] = []
    with recording(out / "several_programs.jsonl.xz") as record:
        for one in given["programs"]:
            if time.monotonic() > begin + seconds:
                break
            program = sequence_of(one["rows"], one["spread"])
            runs = [observed(program, gpus) for _ in range(2)]
            row = {**one, "runs": runs}
            counts["programs"] += 1
            if any("error" in found for found in runs):
                counts["errors"] += 1
            elif not score(one, runs, counts):
                row["again"] = [observed(program, gpus) for _ in range(AGAIN)]
                wrong.append(row)
            record(row)
    shown = {
        "seed": given["seed"], "device": given["device"], "gpus": gpus,
        "drawn": len(given["programs"]), "seconds": time.monotonic() - begin,
        "counts": counts, "columns": COLUMNS, "wrong": wrong,
    }  # fmt: skip
    (out / "several_programs.json").write_text(json.dumps(shown), "utf-8")
    print(f"seed {given['seed']}, {shown['seconds']:.1f} s")
    print(*(f"{name}: {count}" for name, count in counts.items()), sep="\n")
    return int(counts["both runs agree in all, sure, wrong"] > 0)


def score(one: Found, runs: list[Found], counts: Counter[str]) -> bool:
    """Counts a program; returns whether it is as predicted, or its runs differ."""
    keys = ("hang", "begun")
    wanted, sure = one["predicted"], ", sure" if one["sure"] else ", not sure"
    counts["predicted to hang"] += wanted["hang"]
    counts["sure"] += one["sure"]
    counts["hang in the first run"] += runs[0]["hang"]
    good = True
    for what, chosen in (("hang or end", keys[:1]), ("all", keys)):
        first, second, expected = ([each[key] for key in chosen] for each in (*runs, wanted))
        if first != second:
            counts[f"runs differ in {what}"] += 1
            continue
        verdict = "as predicted" if first == expected else "wrong"
        good = good and first == expected
        counts[f"both runs agree in {what}{sure}, {verdict}"] += 1
    return good


if __name__ == "__main__":
    sys.exit(main())
