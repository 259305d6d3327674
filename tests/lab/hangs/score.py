"""Prints what was found of each program beside what is true.

python score.py OUT/results.json ...
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from truth import SETS, TRUTH

# Words of truth.py; the configuration of an SM is how much shared memory it is set to.
SAME = {"warps": "threads", "slots": "blocks", "configuration": "shared_memory"}
RUNTIME = {
    "cuCtxSynchronize": "cudaDeviceSynchronize", "cuCtxSynchronize_v2": "cudaDeviceSynchronize",
    "cuMemFree_v2": "cudaFree", "cuMemFreeHost": "cudaFreeHost",
    "cuMemHostUnregister": "cudaHostUnregister", "cuCtxSetLimit": "cudaDeviceSetLimit",
}  # fmt: skip


def bare(name: str) -> str:
    """The name of a kernel without its types and arguments."""
    return re.split(r"[(<[]", name.removeprefix("void "))[0].rpartition("::")[2]


def rooms(answer: dict[str, Any]) -> list[tuple[str, int, int, set[str]]]:
    """Returns name, missing blocks, all blocks and causes of each launch that never starts.

    The causes: the one named first, and those that refuse a block on all SMs.
    """
    found = []
    for each in answer.get("stranded", []):
        on_all = [set(limit["causes"]) for limit in each.get("limits", [])]
        causes = {each["cause"], *(set.intersection(*on_all) if on_all else ())}
        words = {SAME.get(cause, cause) for cause in causes}
        found.append((bare(each["name"]), each["missing"], each["blocks"], words))
    return found


def called(answer: dict[str, Any]) -> list[str]:
    """The calls that the host is in, as the runtime names them."""
    names = [RUNTIME.get(each["function"], each["function"]) for each in answer.get("calls", [])]
    return [re.sub(r"^cu(?!da)", "cuda", re.sub(r"_v\d+$", "", name)) for name in names]


def main() -> None:
    """Prints a row per program and how many are right."""
    results: dict[str, dict[str, Any]] = {}
    for path in sys.argv[1:]:
        results |= json.loads(Path(path).read_text("utf-8"))["programs"]
    right: dict[str, list[bool]] = {}
    details, slowest, longest_run = [], 0.0, 0.0
    run = [each for each in SETS.values() if results.keys() & each.keys()]
    for name, truth in [pair for each in run for pair in each.items()]:
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
            wanted = (truth.launch, truth.blocks, truth.of, truth.resource)
            is_exact = kind == "room" and any(
                wanted[:3] == each[:3] and wanted[3] in each[3] for each in rooms(answer)[:1]
            )
            details.append(is_exact)
            if not is_exact:
                notes.append(f"wanted {wanted}, got {rooms(answer)[:1]}"[:200])
        if truth.call and is_right and truth.call not in called(answer):
            notes.append(f"{truth.call} is not named, but {called(answer)}")
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
