"""Prints what run.py found, and of how many programs the kind is right.

python score.py OUT/results.json
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path


def main() -> None:
    """Prints a row per program. One that did not do what it should is not counted."""
    results = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    right, counted, fixed = Counter(), Counter(), 0
    print(f"{'program':20} {'expected':15} {'found':15} {'':6} {'s':>5}  fixed  did as it should")
    for name, row in results["programs"].items():
        found = row.get("found", {})
        kind = found.get("kind", "not asked")
        is_right = kind == row["expected"]
        if row["held"] == "yes":
            counted[row["expected"]] += 1
            right[row["expected"]] += is_right
        fixed += row.get("fixed") == "ended"
        print(
            f"{name:20} {row['expected']:15} {kind:15} {'right' if is_right else 'WRONG':6}"
            f"{found.get('seconds', 0):6.1f}  {row.get('fixed', 'not run').split(':')[0]:10}"
            f" {row['held']}"
        )
        if not is_right and "answer" in found:
            print(f"    {found['answer']['reason']}")
    for kind, count in counted.items():
        print(f"{kind:15} {right[kind]} of {count}")
    print(f"kind right in {right.total()} of {counted.total()} programs that did as they should")
    print(f"fixed variants that ended: {fixed} of {len(results['programs'])}")
    slowest = max(row.get("found", {}).get("seconds", 0) for row in results["programs"].values())
    print(f"longest answer: {slowest:.1f} s; all: {results['seconds']:.0f} s")
    print(f"on the GPUs before and after: {results['gpus_before']}, {results['gpus_after']}")
    print(f"not run: {results['not_run']}; not in the archive: {results.get('left_out')}")


if __name__ == "__main__":
    main()
