"""Scores what explain names first of the recordings that run.py made.

python score.py OUT [PROGRAM ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from truth import TRUTH

import tbsched as tb


def main() -> None:
    """Prints a row per program, and how many are right."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or [*TRUTH]
    right = 0
    for name in names:
        rank, words = TRUTH[name]
        found = tb.explain(
            tb.load_program([folder / f"{name}-bad-rank{r}.json.gz" for r in (0, 1)])
        )
        first = found.roots[0]
        told = f"{first.cause} {first.by}".lower()
        is_right = rank in (None, first.gpu) and any(word.lower() in told for word in words)
        right += is_right
        lost = 1e3 * (first.own + first.waited)
        print("right" if is_right else "wrong", name, first.gpu, told[:80], f"{lost:.1f} ms")
    print(f"{right} of {len(names)}")


if __name__ == "__main__":
    main()
