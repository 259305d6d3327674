"""Judges captures again that run.py or ranks/run.py wrote, and prints what is right.

python judge.py OUT/captures.tar.xz ...
"""

from __future__ import annotations

import importlib.util
import lzma
import sys
import tarfile
import tempfile
from pathlib import Path
from types import ModuleType

import tbsched as tb

HERE = Path(__file__).resolve().parent


def module(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


ONE_GPU = module(HERE / "truth.py", "truth_of_one_gpu").TRUTH
RANKS = module(HERE / "ranks" / "truth.py", "truth_of_ranks").TRUTH


def captures(folder: Path) -> dict[str, list[Path]]:
    """Returns the captures of each program: one, or one for each rank in a folder of its own."""
    for packed in folder.rglob("*.jsonl.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        is_rank = path.name in ("r0.jsonl", "r1.jsonl")
        found.setdefault(path.parent.name if is_rank else path.stem, []).append(path)
    return found


def main() -> None:
    """Prints a row per program and how many are right."""
    right = unknown = total = 0
    for archive in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
            for name, paths in captures(Path(folder)).items():
                truth = (ONE_GPU if len(paths) == 1 else RANKS)[name]
                found = tb.hang(*paths)
                is_right = found.kind in (truth.kind, *getattr(truth, "also", ()))
                is_known = found.kind != "not_known"
                right, unknown, total = right + is_right, unknown + (not is_known), total + 1
                word = "right" if is_right else "WRONG" if is_known else "open "
                why = "" if is_right else " ".join([*found.may_be, found.reason[:100]])
                print(word, f"{name:25} {truth.kind:14} {found.kind:14}", why, flush=True)
    print(f"{right} of {total} right, {unknown} not known")


if __name__ == "__main__":
    main()
