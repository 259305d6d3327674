"""Does what tb.coresident says of programs over several GPUs hold, however late their hosts are?

    near.py prepare FILE --out DIR --seed N --count N [--device h200] [--gpus 2]
    near.py run FILE --out DIR --seconds S [--skews 50]

``prepare`` needs no GPU: it draws programs near the limit, asks about each, and writes FILE.
``run`` plays each with hosts that are late. Safe programs, and those that are not known, run with
many random delays, fixed ones with some, unsafe ones with the delays of the witness. Safe and fixed
programs must end, and witnesses hang. Writes ``several_near.json``, the score with all that is
otherwise, and ``several_near.jsonl.xz``, all runs. Exit status 1 if a safe or fixed program hung.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.script import parse_draw
from lab.several.drawn import (
    COLUMNS,
    Row,
    random_delays,
    random_program,
    rows_of,
    sequence_of,
    with_delays,
)
from lab.several.runs import (
    CONNECTIONS,
    Found,
    command_line,
    device_of,
    observed,
    predicted,
    prepare,
    prepared,
    recording,
)

FIX_SKEWS, WITNESS_RUNS = 10, 2
AGAIN = 6  # more runs of what is not as it should be
SEARCH_SECONDS = 30.0
VERDICTS = {True: "safe", False: "not safe", None: "not known"}


class Run(NamedTuple):
    """A program with delays, and whether it should hang; None: nobody knows."""

    kind: str
    rows: list[Row]
    hangs: bool | None
    stay: list[list[int]] | None = None  # as of sequence_of


def main() -> int:
    """Prepares or runs."""
    parser = command_line(__doc__)
    parser.add_argument("--skews", type=int, default=50, help="of each safe program")
    arguments = parse_draw(parser, "programs", 400, 130)
    if arguments.what == "prepare":
        prepare(make, arguments)
        return 0
    return run(prepared(arguments), arguments.out, arguments.seconds, arguments.skews)


def make(asked: tuple[int, int, str, int]) -> Found:
    """A program with what is said of it."""
    seed, number, device, gpus = asked
    spec = device_of(device)
    rows = random_program(seed, number, spec, gpus=gpus, near=True)
    devices = [spec] * gpus
    found = tb.coresident(
        sequence_of(rows), devices, connections=CONNECTIONS, seconds=SEARCH_SECONDS
    )
    said: Found = {
        "number": number, "rows": rows, "safe": found.safe, "in_order": found.in_order,
        "argument": found.argument,
        "fixes": [
            {"kind": fix.kind, "text": fix.text, "rows": rows_of(fix.sequence)}
            for fix in found.fixes
        ],
    }  # fmt: skip
    if found.witness is not None:
        assert found.host is not None
        said["delays"] = [round(seconds * 1e9) for seconds in found.host]
        trace = tb.predict(found.witness, devices, host=found.host, connections=CONNECTIONS)
        said["predicted"] = predicted(trace)
        if found.witness != found.sequence:
            said["stay"] = [launch.duration_ns().tolist() for launch in found.witness.launches]
    return said


def run(given: Found, out: Path, seconds: float, skews: int) -> int:
    """Runs programs, for so many seconds, and scores."""
    gpus, begin = given["gpus"], time.monotonic()
    answers: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    wrong: list[Found] = []
    with recording(out / "several_near.jsonl.xz") as record:
        for one in given["programs"]:
            if time.monotonic() > begin + seconds:
                break
            answers[VERDICTS[one["safe"]]] += 1
            answers["safe by the order of calls"] += one["in_order"]
            answers["without a fix"] += not one["safe"] and not one["fixes"]
            runs = []
            for each in runs_of(one, skews):
                program = sequence_of(each.rows, stay=each.stay)
                found = observed(program, gpus)
                runs.append([each.kind, found])
                counts[f"{each.kind}, {in_words(found)}"] += 1
                if each.hangs is None and found.get("hang"):
                    answers["not known, and hung"] += 1
                if "error" in found or each.hangs in {None, found["hang"]}:
                    continue
                again = [observed(program, gpus) for _ in range(AGAIN)]
                wrong.append({"program": one, "run": each._asdict(), "found": [found, *again]})
            record({**one, "runs": runs})
    shown = {
        "seed": given["seed"], "device": given["device"], "gpus": gpus,
        "drawn": len(given["programs"]), "seconds": time.monotonic() - begin, "skews": skews,
        "answers": answers, "counts": counts, "columns": COLUMNS, "wrong": wrong,
    }  # fmt: skip
    (out / "several_near.json").write_text(json.dumps(shown), "utf-8")
    print(f"seed {given['seed']}, {shown['seconds']:.1f} s, {dict(answers)}")
    print(*(f"{name}: {count}" for name, count in sorted(counts.items())), sep="\n")
    return int(any(not each["run"]["hangs"] for each in wrong))


def in_words(found: Found) -> str:
    """Returns how a run ended, in a word."""
    if "error" in found:
        return "error"
    return "hung" if found["hang"] else "ended"


def runs_of(one: Found, skews: int) -> Iterator[Run]:
    """The runs of a program; the same each time."""
    rng = random.Random(one["number"])
    if one["safe"] is not False:
        hangs = None if one["safe"] is None else False
        yield from skewed(VERDICTS[one["safe"]], one["rows"], rng, skews, hangs)
    else:
        late = with_delays(one["rows"], one["delays"])
        for _ in range(WITNESS_RUNS):
            yield Run("witness", late, True, one.get("stay"))
    for fix in one["fixes"]:
        yield from skewed(f"fixed by {fix['kind']}", fix["rows"], rng, FIX_SKEWS, False)


def skewed(
    kind: str, rows: list[Row], rng: random.Random, skews: int, hangs: bool | None
) -> Iterator[Run]:
    """Returns delays of runs: random ones, and none for the first."""
    yield Run(kind, rows, hangs)
    for _ in range(skews - 1):
        yield Run(kind, with_delays(rows, random_delays(rows, rng)), hangs)


if __name__ == "__main__":
    sys.exit(main())
