"""Prints what was found of each program beside what is true.

python score.py OUT/results.json ...
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from truth import TRUTH

ROOM = re.compile(r"(?P<blocks>\d+) of (?P<of>\d+) blocks of (?P<launch>.+?) never start")


def bare(name: str) -> str:
    """The name of a kernel without its types and arguments."""
    return re.split(r"[(<]", name.removeprefix("void "))[0]


def rooms(answer: dict[str, Any]) -> list[tuple[str, Any, Any, str]]:
    """Launch, blocks that never start, of how many, and all words of each stranded launch."""
    found = []
    for each in answer.get("stranded") or []:
        words = json.dumps(each)
        name = next((each[key] for key in ("name", "launch", "kernel") if key in each), None)
        blocks = next((each[key] for key in ("blocks", "missing", "stranded") if key in each), None)
        found.append((bare(str(name)), blocks, each.get("of") or each.get("grid"), words))
    told = ROOM.search(str(answer.get("reason")))
    if told:
        reason = str(answer["reason"])
        found.insert(0, (bare(told["launch"]), int(told["blocks"]), int(told["of"]), reason))
    return found


def main() -> None:
    """Prints a row per program and how many are right."""
    results: dict[str, dict[str, Any]] = {}
    for path in sys.argv[1:]:
        results |= json.loads(Path(path).read_text("utf-8"))["programs"]
    right: dict[str, list[bool]] = {}
    details, slowest, longest_run = [], 0.0, 0.0
    for name, truth in TRUTH.items():
        result = results.get(name)
        if result is None:
            print(f"{'not run':11} {name}")
            continue
        answer = result.get("answer") or {}
        kind = answer.get("kind", "error")
        is_right = kind in (truth.kind, *truth.also)
        right.setdefault(truth.kind, []).append(is_right)
        slowest = max(slowest, result.get("judge_s", 0))
        longest_run = max(longest_run, result.get("run_s", 0))
        notes = []
        if result.get("program_ended"):
            notes.append("the program ended by itself")
        elif result.get("capture_ended") and not result.get("watch"):
            notes.append("ended with " + result["output"][-120:].replace("\n", " "))
        if result.get("fixed_ended") is False:
            notes.append("FIXED DID NOT END")
        if kind == "error":
            notes.append(str(result.get("error"))[-120:].replace("\n", " "))
        if truth.kind == "room":
            wanted = (truth.launch, truth.blocks)
            same = [each for each in rooms(answer) if each[:2] == wanted]
            is_exact = any(str(truth.resource) in each[3] for each in same)
            details.append(is_exact)
            if not is_exact:
                told = [each[:3] for each in rooms(answer)] or "no room"
                notes.append(f"wanted {wanted} {truth.resource}, got {told}"[:200])
        if truth.call and is_right and truth.call not in json.dumps(answer):
            notes.append(f"{truth.call} is not named")
        if not is_right:
            notes.append(str(answer.get("reason"))[:120])
        times = f"{result.get('run_s', 0):5.1f} {result.get('judge_s', 0):5.1f}"
        row = f"{'right' if is_right else 'WRONG':5} {name:25} {truth.kind:13} {kind:13} {times}"
        print(row, "; ".join(notes))
    print()
    for kind, each in right.items():
        print(f"{kind:14} {sum(each)} of {len(each)}")
    count = sum(map(len, right.values()))
    print(f"{'all':14} {sum(map(sum, right.values()))} of {count}")
    print(f"rooms with launch, blocks and resource right: {sum(details)} of {len(details)}")
    hangs = [each for name, each in results.items() if TRUTH[name].kind != "not_hanging"]
    hung = sum(not each.get("program_ended") for each in hangs if "run_s" in each)
    print(f"of {len(hangs)} that are to hang, {hung} did not end by themselves")
    fixed = [each["fixed_ended"] for each in hangs if "fixed_ended" in each]
    print(f"fixed variants that ended: {sum(fixed)} of {len(fixed)}")
    print(f"longest run {longest_run:.1f} s, longest judgement of a capture {slowest:.1f} s")


if __name__ == "__main__":
    main()
