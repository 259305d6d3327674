"""What variants of real kernels did on GPUs: whether they computed the same, and what they gained.

python tests/sm/variants/score.py                        # from the recordings, no GPU needed
python tests/sm/variants/score.py --read DIR --gpu h100  # takes in a run of lab/inside/variants.py
"""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tbsched.sm.rewriting import Ratio

HERE = Path(__file__).parent / "recorded"
GPUS = ("h100", "h200")
MUCH = 1.03  # a gain that is worth a search
MARGIN = 10.0  # by which a variant may differ more than the original from itself
Row = dict[str, Any]
Table = tuple[tuple[str, ...], list[tuple[object, ...]]]  # header and rows


@dataclass(frozen=True)
class Gain:
    """The original's time as a ratio to that of a variant.

    Attributes:
        kernel: its name.
        variant: how it differs.
        chosen: in the rounds that chose it.
        fresh: in later ones.
    """

    kernel: str
    variant: str
    chosen: Ratio
    fresh: Ratio

    @property
    def much(self) -> bool:
        """Whether it is more than noise, and more than 3 %."""
        return self.fresh.low > 1 and self.fresh.value > MUCH


@functools.cache
def kernels(gpu: str) -> tuple[Row, ...]:
    """What was recorded of each kernel, the failed ones too."""
    lines = lzma.decompress((HERE / f"{gpu}.jsonl.xz").read_bytes()).decode().splitlines()
    return tuple(json.loads(line) for line in lines[1:])


def is_padded(variant: Row, original: Row) -> bool:
    return not variant["order"] and variant is not original


def is_reordered(variant: Row, original: Row) -> bool:
    return bool(variant["order"]) and variant["registers"] == original["registers"]


def is_other(variant: Row, original: Row) -> bool:
    return variant is not original


KINDS: dict[str, Callable[[Row, Row], bool]] = {
    "more registers": is_padded,
    "another order": is_reordered,
    "either, or both": is_other,
}


def gains(gpu: str, kind: Callable[[Row, Row], bool]) -> list[Gain]:
    """Returns the gain of each kernel's fastest variant of a kind, as a search would find it."""
    found = []
    for row in kernels(gpu):
        original, *others = row.get("variants", [{}])
        timed = [v for v in others if v["us"] and kind(v, original) and v["name"] in row["fresh"]]
        if timed:
            best = min(timed, key=lambda v: statistics.median(v["us"]))
            fresh = row["fresh"]
            found.append(Gain(
                row["kernel"], best["name"], _ratio(original["us"], best["us"]),
                _ratio(fresh["original"], fresh[best["name"]]),
            ))  # fmt: skip
    return found


def _ratio(first: Iterable[float], second: Iterable[float]) -> Ratio:
    return Ratio.of(a / b for a, b in zip(first, second, strict=True))


def wrong(row: Row) -> list[str]:
    """Variants of a kernel that wrote something else than the original."""
    return [
        v["name"] for v in row.get("variants", [])[1:]
        if not v["same"] and (row["repeats"] or v["differs"] > MARGIN * row["own"])
    ]  # fmt: skip


def outputs() -> Table:
    """Returns how many variants had the same outputs."""
    counts = {gpu: _outputs(gpu) for gpu in GPUS}
    rows = [(what, *(counts[gpu][what] for gpu in GPUS)) for what in counts[GPUS[0]]]
    return ("", *map(str.upper, GPUS)), rows


def _outputs(gpu: str) -> dict[str, object]:
    rows = [row for row in kernels(gpu) if row.get("variants")]
    repeating = [row for row in rows if row["repeats"]]
    other = [row for row in rows if not row["repeats"]]
    variants = [v for row in repeating for v in row["variants"][1:]]
    everything = [v for row in rows for v in row["variants"]]
    same = sum(v["same"] for v in variants)
    close = sum(len(row["variants"]) - 1 - len(wrong(row)) for row in other)
    return {
        "kernels": len(rows),
        "variants": f"{len(everything) - len(rows):,}",
        "of these in another order": f"{sum(bool(v['order']) for v in everything):,}",
        "bit for bit as the original": f"{same:,} of {len(variants):,}",
        "kernels whose original does not repeat itself": len(other),
        "their variants that differ no more": (
            f"{close} of {sum(len(row['variants']) - 1 for row in other)}"
        ),
        "blocks on an SM as predicted": (
            f"{sum(v['resident'] == v['predicted'] for v in everything):,} of {len(everything):,}"
        ),
        "failed": len(kernels(gpu)) - sum("failed" not in row for row in kernels(gpu)),
    }


def found() -> Table:
    """What a search gains, and whether what it chooses is really faster."""
    rows: list[tuple[object, ...]] = []
    for name, kind in KINDS.items():
        for gpu in GPUS:
            every = gains(gpu, kind)
            seeming = [each for each in every if each.chosen.low > 1]
            rows.append((
                name, gpu.upper(), len(every),
                _percent(statistics.median(each.fresh.value for each in every)),
                sum(each.fresh.low > 1 for each in every),
                sum(each.much for each in every),
                f"{sum(each.fresh.low > 1 for each in seeming)} of {len(seeming)}",
            ))  # fmt: skip
    header = (
        "fastest with", "GPU", "kernels", "median gain", "faster", "by more than 3 %",
        "seemed faster, and was",
    )  # fmt: skip
    return header, rows


def much() -> Table:
    """The kernels that gain much on a GPU."""
    by_gpu = [{each.kernel: each for each in gains(gpu, is_other)} for gpu in GPUS]
    names = {each.kernel for found in by_gpu for each in found.values() if each.much}
    ranked = sorted(names, key=lambda name: -max(f[name].fresh.value for f in by_gpu if name in f))
    rows: list[tuple[object, ...]] = [
        (f"`{name}`", *(cell for found in by_gpu for cell in _cells(found.get(name))))
        for name in ranked
    ]
    return ("kernel", *(text for gpu in GPUS for text in (gpu.upper(), "gain"))), rows


def _cells(gain: Gain | None) -> tuple[str, str]:
    return ("–", "–") if gain is None else (gain.variant, _percent(gain.fresh.value))


def _percent(ratio: float) -> str:
    text = f"{100 * (ratio - 1):+.1f} %".replace("-", "−")
    return "0.0 %" if text[1:] == "0.0 %" else text


def main() -> int:
    """Prints the tables, or takes a run in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", choices=GPUS)
    parser.add_argument("--read", type=Path, metavar="DIR", help="what variants.py wrote")
    arguments = parser.parse_args()
    if arguments.read:
        content = (arguments.read / "variants.jsonl").read_bytes()
        (HERE / f"{arguments.gpu}.jsonl.xz").write_bytes(lzma.compress(content))
    for header, rows in (outputs(), found(), much()):
        print("", *(" | ".join(map(str, row)) for row in (header, *rows)), sep="\n")
    for gpu in GPUS:
        for row in kernels(gpu):
            if wrong(row) or "failed" in row:
                print(gpu, row["kernel"], *wrong(row), row.get("failed", ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
