"""Scores `tbsched explain` on programs with one known defect, and on programs with none.

    python tests/real/score_defects.py tests/real/defects/h100

The programs are in tests/lab/defects. They were written by somebody who had not seen how
`tbsched explain` works. Each was recorded with its defect and without it, under torch.profiler and
without. For each the script prints whether the defect is the first cause, what the change that
removes it is predicted to save, and what it did save.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import tbsched as tb
from tbsched.views.explanations import account_table, gaps_table, model_words

# What each program's defect is called in the first lines, and the change that removes it.
# None: no change that is tried removes it.
DEFECTS: dict[str, tuple[str, str | None]] = {
    "defect_01_item_each_batch": (r"after cudaStreamSynchronize in aten::item", "aten::item"),
    "defect_02_sync_each_op": (r"after cudaDeviceSynchronize", r"without \d+ synchronisations"),
    "defect_03_pageable_h2d": (r"h2d pageable", "pinned memory"),
    "defect_04_list_to_tensor": (
        r"nothing recorded before h2d",
        "of which the profile has nothing",
    ),
    "defect_05_empty_cache": (r"cudaFree", "cudaFree"),
    "defect_06_cupy_no_pool": (r"cudaFree", "cudaFree"),
    "defect_07_no_graph": (r"the host had not launched", "CUDA graphs"),
    "defect_08_loop_not_batched": (r"the host had not launched", "CUDA graphs"),
    "defect_09_python_between": (r"nothing recorded", "of which the profile has nothing"),
    "defect_10_boolean_mask": (r"after cudaStreamSynchronize in aten::index", "aten::nonzero"),
    "defect_11_print_tensor": (
        r"after cudaStreamSynchronize in aten::",
        "together: .*(which wait for the GPU|synchronisations)",
    ),
    "defect_12_numpy_on_host": (
        r"nothing recorded before h2d",
        "together: .*of which the profile has nothing",
    ),
    "defect_13_one_stream": (r"their blocks filled \d", "by turns in"),
    "defect_14_legacy_stream": (r"legacy stream", "in another stream"),
    "defect_15_needless_wait": (r"for an event", r"without all \d+ waits"),
    "defect_16_pageable_d2h": (r"d2h pageable", "pinned memory"),
    "defect_17_unfused_gelu": (r"vectorized_elementw", "element by element"),
    "defect_18_loader_no_workers": (r"DataLoader", "workers of the loader"),
    "defect_19_optimizer_loop": (r"within Optimizer.step#Adam.step", "element by element"),
    "defect_20_copy_same_stream": (r"h2d pinned", "in a stream of their own"),
    "defect_21_clip_item_per_param": (r"in aten::item", "aten::item"),
    "defect_22_moe_nonzero": (r"aten::(nonzero|where)", "aten::nonzero"),
    "defect_23_event_sync_each_layer": (r"after cudaEventSynchronize", "the last one in each"),
    "defect_24_confusion_on_host": (
        r"nothing recorded .* after cudaStreamSynchronize in aten::to",
        "together: .*of which the profile has nothing",
    ),
    "defect_25_prefetch_pageable": (r"h2d pageable", "pinned memory"),
    "defect_26_samples_one_by_one": (r"aten::stack|in aten::(to|copy_)", "between host and GPU as"),
    "defect_27_cpu_for_each_image": (r"in aten::(to|copy_)", "between host and GPU as"),
    "defect_28_noise_on_cpu": (r"aten::randn", "aten::randn"),
    "defect_29_save_on_cpu_unpinned": (r"pageable", "pinned memory"),
    "defect_32_cupy_residual_each": (r"after cudaStreamSynchronize|d2h", "values that"),
    "defect_33_kv_cache_cat": (r"CatArray", "only move data"),
    "defect_34_autocast_recast": (r"elementw", "only move data"),
    "defect_35_matmul_without_tf32": (r"sgemm|simt|f32f32", None),
    "defect_36_convolutions_nchw": (r"nchwTo|nhwcTo", "only move data"),
    "defect_37_dense_causal_mask": (r"fmha|flash|sdpa", None),
    "defect_38_defensive_clones": (r"d2d|copy", "only move data"),
    "defect_39_anomaly_mode": (r"in aten::(is_nonzero|item|any)", "checks for NaN"),
    "defect_40_triton_without_graph": (r"the host had not launched", "CUDA graphs"),
    "defect_41_stream_wait_each": (r"after cudaStreamSynchronize", "the last one in each step"),
    "defect_42_tokenise_each_step": (r"nothing recorded", "of which the profile has nothing"),
    # The third set, written down from what its author says is true, before any output was seen.
    "defect_43_stop_test_each_token": (
        r"aten::(is_nonzero|item|_local_scalar_dense)",
        r"without \d+ sync|aten::(item|is_nonzero)",
    ),
    "defect_44_cupy_index_on_host": (r"after cudaStreamSynchronize|d2h", r"without \d+ sync"),
    "defect_45_repeat_without_size": (
        r"aten::(item|repeat_interleave|_local_scalar_dense)",
        r"without \d+ sync|aten::item",
    ),
    "defect_46_cholesky_checked": (
        r"aten::(item|_linalg_check_errors|linalg_cholesky)",
        r"without \d+ sync|aten::item",
    ),
    "defect_47_launch_blocking": (r"cudaLaunchKernel|blocked|LAUNCH_BLOCKING", r"without|graphs"),
    "defect_48_beam_search_on_host": (r"nothing recorded", "of which the profile has nothing"),
    "defect_49_gc_collect_each_step": (r"nothing recorded", "of which the profile has nothing"),
    "defect_50_replay_buffer_python": (r"nothing recorded", "of which the profile has nothing"),
    "defect_51_error_rate_before_launch": (r"nothing recorded", "of which the profile has nothing"),
    "defect_52_index_with_list": (
        r"aten::(index|to|copy_)|h2d pageable",
        r"between host and GPU as|without \d+ sync|pinned memory",
    ),
    "defect_53_float_images_upload": (r"h2d pinned", None),
    "defect_54_memory_round_trip": (r"pageable", r"pinned memory|between host and GPU as"),
    "defect_55_copy_all_use_last": (r"d2h pageable", "pinned memory"),
    "defect_56_cupy_one_copy_stream": (r"h2d|d2h|cop(y|ies)", r"in a(nother)? stream"),
    "defect_57_event_after_next_copy": (r"for an event|h2d pinned", r"without .*waits?"),
    "defect_58_graph_one_branch": (r"advance", r"by turns in|in another stream"),
    "defect_59_attention_by_hand": (r"softmax|aten::mul|elementw", "element by element"),
    "defect_60_lstm_cell_loop": (r"the host had not launched", "CUDA graphs"),
    "defect_61_checkpoint_without_need": (r"gemm|nvjet|gelu|cutlass", None),
    "defect_62_triton_block_per_row": (r"sum_squares", None),
}
_NEAR, _LITTLE = 0.2, 0.03  # of what was saved; of the time of the program
_LINES = 3  # of the account; the line above it, and one of the gaps, may name the defect, too


@dataclass(frozen=True, slots=True)
class Scored:
    """What was found of a program; shares of the time that it takes with its defect.

    Attributes:
        named: whether the first lines name the defect.
        predicted: what the change saves that removes it; None: no such change is told.
        most: what the change saves that is predicted to save most, bounds left out.
        profiled, unprofiled: what was saved, with torch.profiler and without.
    """

    name: str
    named: bool
    predicted: float | None
    most: float
    profiled: float
    unprofiled: float

    def is_near(self, saved: float) -> bool:
        """Returns whether the prediction is within a fifth of what was saved."""
        return self.predicted is not None and abs(self.predicted / saved - 1) <= _NEAR


_UNKNOWN = "of which the profile has nothing"  # work that is to be recorded again: no promise


def scored(folder: Path, name: str) -> Scored:
    """One program, with its defect or as it was given."""
    times = json.loads((folder / "times.json").read_text("utf-8"))[name]
    first, second = ("defect", "fixed") if name in DEFECTS else ("given", "changed")
    found = tb.explain(tb.load_program(folder / f"{name}-{first}.json.gz", fit=False))
    account = account_table(found, found.accounted.gpus[0])
    lines = [model_words(found), *[row[2] for row in account.rows][:_LINES]]
    if found.gaps:
        lines += [row[4] for row in gaps_table(found).rows][:1]
    cause, change = DEFECTS.get(name, ("", None))
    assert found.prediction is not None
    whole = found.prediction.makespan
    saves = {x.what: x.saves / whole for x in found.changes if not x.is_bound}
    removes = [
        x
        for what, x in saves.items()
        if change is not None and re.search(change, what)
        if what.startswith("together: ") == change.startswith("together: ")
    ]
    gained = [
        1 - times[second][key] / times[first][key]
        for key in ("profiled_step_s", "unprofiled_step_s")
    ]
    named = any(re.search(cause, str(line)) for line in lines)
    most = max((x for what, x in saves.items() if _UNKNOWN not in what), default=0.0)
    return Scored(name, named, removes[0] if removes else None, most, gained[0], gained[1])


def main(folders: list[str]) -> None:
    """Prints a row per program."""
    for folder in map(Path, folders):
        print(f"\n{folder}\nprogram, named first, predicted %, saved %, without profiler %")
        names = sorted(json.loads((folder / "times.json").read_text("utf-8")))
        rows = [scored(folder, name) for name in names]
        for row in rows:
            predicted = row.most if row.name not in DEFECTS else row.predicted
            told = "-" if predicted is None else f"{100 * predicted:.1f}"
            named = "yes" if row.named else "NO"
            saved = f"{100 * row.profiled:6.1f} {100 * row.unprofiled:6.1f}"
            print(f"{row.name:32} {named:3} {told:>6} {saved}")
        defects = [row for row in rows if row.name in DEFECTS]
        given = [row for row in rows if row.name not in DEFECTS]
        print(f"defects named first: {sum(row.named for row in defects)} of {len(defects)}")
        profiled = [row.is_near(row.profiled) for row in defects]
        unprofiled = [row.is_near(row.unprofiled) for row in defects]
        print(
            f"predicted within {100 * _NEAR:.0f} % of what was saved: {sum(profiled)} under the "
            f"profiler, {sum(unprofiled)} without it, {sum(map(max, profiled, unprofiled))} of one"
        )
        little = sum(row.most <= _LITTLE for row in given)
        print(f"without one, promised at most {100 * _LITTLE:.0f} %: {little} of {len(given)}")


if __name__ == "__main__":
    main(sys.argv[1:])
