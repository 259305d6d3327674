"""Recordings of an H100 and an H200, replayed: profiles, slowdowns, and pairs of real kernels."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from sm.neighbours.score import Recording, load_profiles, load_rows

HERE = Path(__file__).parent
BLOCKS = 700  # of a pair: more take long


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ncu") / "ncu.csv"
    path.write_bytes(lzma.decompress((HERE / "h200-ncu.csv.xz").read_bytes()))
    return path


def test_a_report_of_ncu_tells_what_kernels_need(report: Path) -> None:
    found = {(each.name, each.blocks): each for each in tb.sm.load_ncu(report, "h200")}
    for name, resource in (
        ("polynomial", "fp64"), ("mandelbrot", "issue"), ("reduction", "dram"),
        ("sparse", "requests"), ("hashing", "logic"),
    ):  # fmt: skip
        profile = next(each for key, each in found.items() if key[0] == name and key[1] > 132)
        assert max(profile.work, key=lambda key: profile.work[key]) == resource
    one, whole = found["vector_add", 132], found["vector_add", 4096]
    assert one.scaled(4096).work["dram"] == pytest.approx(whole.work["dram"], rel=0.05)
    assert whole.far > 0.9
    assert found["mandelbrot", 132].far == 0


def test_a_report_without_what_is_needed_is_refused(report: Path, tmp_path: Path) -> None:
    text = report.read_text("utf-8").replace("lts__throughput", "lts__other")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(text, "utf-8")
    with pytest.raises(
        ValueError, match=r"lts__throughput.* is missing; give ncu --metrics all of"
    ):
        tb.sm.load_ncu(wrong, "h200")
    head, units, row, *_ = (
        line for line in report.read_text("utf-8").splitlines() if line.startswith('"')
    )
    cells = row.split('","')
    time = next(k for k, name in enumerate(head.split('","')) if name == tb.sm.NCU_METRICS[0])
    for text, message in (
        ("nothing", "no report of ncu"),
        (f"{head}\n{units}", "a report of no kernels"),
        (f"{head}\n{units}\n{row[:90]}", "launch 0, 'fill': gpu__time_duration.sum: a number"),
        (f"{head}\n{units}\n{row}".replace("(1056, 1, 1)", "(many)"), r"Grid Size: .* '\(many"),
        (f"{head}\n{units}\n{row}".replace(cells[time], "n/a"), "launch 0, 'fill': .* got 'n/a'"),
    ):
        wrong.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=message):
            tb.sm.load_ncu(wrong, "h200")


def test_profiles_are_kept_in_files(report: Path, tmp_path: Path) -> None:
    profiles = tb.sm.load_ncu(report, "h200")[:3]
    path = tmp_path / "profiles.json"
    tb.sm.save_profiles(profiles, path)
    assert tb.sm.load_profiles(path) == profiles
    path.write_text("{}", "utf-8")
    with pytest.raises(
        ValueError,
        match=r"no file that tb\.sm\.save_profiles writes: .*tbsched_profiles is missing",
    ):
        tb.sm.load_profiles(path)


@pytest.mark.parametrize("device", ["h100", "h200"])
def test_pairs_are_closer_with_interference(device: str) -> None:
    recording = Recording(
        load_rows(HERE / f"{device}-fresh.jsonl.xz"),
        load_profiles(HERE / f"{device}-ncu.csv.xz", device),
        device,
    )
    small = [row for row in recording.pairs if sum(blocks for *_, blocks in row["of"]) < BLOCKS]
    errors = np.array([recording.score(row).errors for row in small[::13]])
    without, predicted = errors.mean(axis=0)
    assert len(errors) >= 8
    assert predicted < 0.6 * without
    assert np.median(errors[:, 1]) < 0.1


@pytest.mark.parametrize("device", ["h100", "h200"])
def test_figure_5_is_where_the_prediction_has_it(device: str) -> None:
    for row in load_rows(HERE / f"{device}.jsonl.xz"):
        if row["kind"] == "figure5":
            seq = tb.Sequence(tb.Launch(4, n, 20, carveout=100) for n in (128, row["threads"]))
            predicted = [placement.smid.tolist() for placement in tb.predict(seq, device)]
            for run in row["runs"]:
                assert [[sm for sm, *_ in kernel] for kernel in run] == predicted
