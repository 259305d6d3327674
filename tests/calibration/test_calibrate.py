"""Calibrations of GPUs that a model plays."""

from __future__ import annotations

import json
import lzma
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from calibration.hidden import Hidden, drawn, effective, same, wrong
from helpers import ROOT, examples, gpu
from tbsched import views
from tbsched.calibration import Calibration, campaign
from tbsched.calibration.asking.journal import Journal
from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.asking.times import Quantity, at_once
from tbsched.calibration.campaign import Campaign
from tbsched.calibration.doubt.last_look import LEFT_OUT
from tbsched.calibration.draft import PROVENANCES
from tbsched.calibration.finding import TOLD
from tbsched.calibration.probes.streams import queues
from tbsched.calibration.probes.topology import largest_gpc
from tbsched.campaigns.oracles import ModelGpu
from tbsched.campaigns.results import Report
from tbsched.hardware.catalogue import ablated
from tbsched.traces.growing_file import TraceFile

RECORDED = ROOT / "tests" / "traces" / "calibrations"
LONG = 3600.0  # no test depends on the time
SEEDS = range(examples(12))
FOUR = gpu(4, "h200")
# Three GPCs, and two TPCs of none.
SMALL = gpu(36, "h200", gpcs=((0, 3, 6, 9, 12), (1, 4, 7, 10, 13), (2, 5, 8, 11, 14, 15)))


def calibrated(oracle: object, sequences: int = 40) -> Calibration:
    return tb.calibrate(oracle, LONG, sequences=sequences, progress=False)  # type: ignore[arg-type]


# What the host decides: how long a call takes, and when its memory has what a kernel wrote.
OF_THE_HOST = {
    "scheduler.launch_latency_ns",
    "scheduler.completion_latency_ns",
    "scheduler.synchronize_ns",
}


class Gone:
    """A GPU that only says which one it was: all else must be in the evidence."""

    def __init__(self, first: tb.Trace) -> None:
        self.first: tb.Trace | None = first

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        first, self.first = self.first, None
        assert first is not None, seq
        return first


def replayed(name: str, folder: Path) -> Calibration:
    """Returns the calibration of a real GPU whose evidence was recorded."""
    kept, begin = folder / "seen.jsonl", folder / "first.jsonl"
    packed = (RECORDED / f"evidence-{name}.jsonl.xz").read_bytes()
    lines = lzma.decompress(packed).splitlines(keepends=True)
    kept.write_bytes(b"".join(lines))
    begin.write_bytes(b"".join(lines[:2]))  # the header and a run
    (first,) = tb.load_traces(begin)
    return tb.calibrate(Gone(first), LONG, sequences=0, evidence=kept, progress=False)


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    return replayed("h200", tmp_path_factory.mktemp("evidence"))


def test_h200_is_found_from_nothing(h200: Calibration) -> None:
    check_found(h200, "h200")


def test_h100_is_found_from_nothing(tmp_path: Path) -> None:
    check_found(replayed("h100", tmp_path), "h100")


def check_found(found: Calibration, name: str) -> None:
    """All that is told is in the shipped file, but for times of the host."""
    spec = tb.device(name)
    others = {str(path).partition(":")[0] for path in wrong(found, spec)} - OF_THE_HOST
    assert not others
    assert len(found.told) >= 41
    # It shows only in partitions.
    assert {finding.path for finding in found.assumed} - OF_THE_HOST == {
        "mechanisms.clusters_use_whole_partition"
    }
    assert found.finding("scheduler.hardware_queues").kind == "documented"
    certificate = found.certificate
    assert certificate.holds
    assert certificate.disagreements == 0
    assert certificate.sequences > 10_000
    assert certificate.miss_rate == pytest.approx(1 - 0.05 ** (1 / certificate.sequences))
    assert certificate.left_out == LEFT_OUT


def test_written_file_says_where_each_value_is_from(h200: Calibration, tmp_path: Path) -> None:
    h200.save(tmp_path / "mine.toml")
    read = tb.device(str(tmp_path / "mine.toml"))
    assert read.title == "NVIDIA H200"
    for finding in h200.report:
        origin = read.provenance[finding.path]
        assert origin.kind == PROVENANCES[finding.kind]
        assert origin.source.startswith("calibration")
    sequence = tb.Sequence([tb.Launch(132, 256, 32), tb.Launch(264, 512, 32, 4096)])
    theirs = tb.predict(sequence, "h200")
    assert tb.compare(tb.predict(sequence, read), theirs).exact


def test_what_is_not_told_is_as_documented(tmp_path: Path) -> None:
    found = calibrated(gpu(1, "xavier", blocks_per_sm=8), 0)
    finding = found.finding("scheduler.resident_grids")
    assert (finding.kind, finding.value) == ("documented", 16)
    found.save(tmp_path / "mine.toml")
    assert tb.device(tmp_path / "mine.toml").provenance[finding.path].kind == "vendor"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_value_of_a_hidden_device_is_told_wrong(seed: int) -> None:
    spec = drawn(seed, most_sms=16)
    found = calibrated(Hidden(spec, noise=0.01 * (seed % 2), seed=seed))
    assert wrong(found, spec) == []
    assert found.certificate.holds
    untold = {finding.path for finding in found.report if finding.kind != TOLD}
    assert untold == {witness.path for witness in found.witnesses}


@pytest.mark.parametrize(
    "seed",
    [
        900012,  # the campaign shows that something assumed is wrong
        900344,  # blocks that leave gaps show the largest size of shared memory
        910561,  # each GPC has one SM, and takes no cluster
    ],
)
def test_what_is_assumed_is_mended(seed: int) -> None:
    spec = drawn(seed, most_sms=40 if seed == 900012 else 48)
    found = tb.calibrate(
        Hidden(spec, 0.01 * (seed % 3) / 2, seed), LONG, sequences=100, seed=seed, progress=False
    )
    assert wrong(found, spec) == []
    assert found.certificate.holds
    assert found.finding("scheduler.policy").value == spec.policy
    untold = {finding.path for finding in found.report if finding.kind != TOLD}
    assert untold == {witness.path for witness in found.witnesses}


def test_untold_values_come_with_another_device_that_explains_everything() -> None:
    found = calibrated(Hidden(tb.device("xavier")), 0)
    for finding in found.report:
        if finding.kind == TOLD:
            with pytest.raises(KeyError):
                found.witness(finding.path)
            continue
        witness = found.witness(finding.path)
        assert finding.path in dict(witness.changes)
        assert dict(witness.changes)[finding.path] != finding.value
        assert witness.sequences > 300
        telling = witness.telling
        if telling is not None:
            ours, theirs = tb.predict(telling, found.spec), tb.predict(telling, witness.device)
            assert not tb.compare(ours, theirs).exact
    assert "would be the same" in str(found)


@pytest.mark.parametrize("name", ["rtx3090", "xavier"])
def test_shipped_devices_without_clusters_are_found(name: str) -> None:
    spec = tb.device(name)
    found = calibrated(Hidden(spec), 100)
    assert wrong(found, spec) == []
    assert found.certificate.holds
    assert len(found.told) >= 24


@pytest.mark.parametrize(
    ("ablation", "path"),
    [
        ("no-warp-skip", "mechanisms.warp_skip"),
        ("free-warps", "mechanisms.strict_round_robin"),
        ("no-processing-blocks", "limits.processing_blocks"),
        ("contiguous-registers", "mechanisms.registers"),
        ("pooled-shared-memory", "mechanisms.shared_memory"),
        ("highest-gap", "mechanisms.lowest_gap_first"),
        ("configuration-per-tpc", "mechanisms.configuration_per_tpc"),
        ("no-configuration-headroom", "mechanisms.configuration_headroom"),
        ("carveout-by-size", "mechanisms.carveout_counts_blocks"),
        ("no-local-memory", "mechanisms.local_memory_configuration"),
        ("no-head-of-line", "scheduler.launch_order"),
        ("clusters-anywhere", "mechanisms.clusters_seek_idle_sms"),
        ("clusters-in-gpcs", "mechanisms.clusters_use_singletons"),
        ("no-balanced-clusters", "mechanisms.clusters_balance"),
    ],
)
def test_mechanism_that_a_gpu_lacks_is_told(ablation: str, path: str) -> None:
    spec = ablated(SMALL if "clusters" in ablation else FOUR, ablation)
    found = calibrated(Hidden(spec), 0)
    assert wrong(found, spec) == []
    finding = found.finding(path)
    assert (finding.kind, finding.value) == (TOLD, effective(spec, path))


STREAMS = {
    "scheduler.priority_levels": 3,
    "scheduler.hardware_queues": 5,
    "scheduler.resident_grids": 17,
    "scheduler.exit_latency_ns": 450,
    "scheduler.event_latency_ns": 300,
    "scheduler.synchronize_ns": 2000,
}


def test_what_shows_in_streams_is_told() -> None:
    values = {path.partition(".")[2]: value for path, value in STREAMS.items()}
    found = calibrated(Hidden(gpu(4, "xavier", **values)), 0)
    for path, value in STREAMS.items():
        finding = found.finding(path)
        assert finding.kind == TOLD, finding
        assert same(path, finding.value, value), finding


@pytest.mark.parametrize("levels", [1, 2, 4])
def test_priorities_that_are_clamped_are_counted(levels: int) -> None:
    oracle = Hidden(gpu(4, "xavier", priority_levels=levels), refuses=False)
    finding = calibrated(oracle, 0).finding("scheduler.priority_levels")
    if levels > 1:
        assert (finding.kind, finding.value) == (TOLD, levels)
    else:  # no order by priority, or one priority: the same
        assert finding.kind != TOLD
        assert levels in (finding.value, *finding.rivals)


def test_what_a_slow_host_adds_is_not_taken_for_the_gpus() -> None:
    values = {"completion_latency_ns": 1450, "launch_latency_ns": 6000}
    found = calibrated(Hidden(gpu(4, "xavier", **values, host_write_ns=1000), tick=0), 0)
    assert found.finding("scheduler.completion_latency_ns").value == 2450
    for name in values:
        path = f"scheduler.{name}"
        assert found.finding(path).kind == "assumed"
        assert "scheduler.host_write_ns" in dict(found.witness(path).changes)


def test_connections_that_a_process_asks_for_are_not_those_of_the_gpu() -> None:
    sequence = tb.Sequence([tb.Launch(1, 32, 16, stream=k % 64, duration=1.0) for k in range(128)])
    seen = Quantity(sequence, at_once, 32.0, 0.0, 0.5)
    finding = queues.read(seen, room=128, default=8, max_connections=32)
    assert (finding.kind, finding.value) == ("documented", 8)
    assert queues.read(seen, room=128, default=8, max_connections=None) == replace(
        finding,
        kind=TOLD,
        value=32,
        because="32 of 64 streams ran at once, whose second launches waited",
    )
    assert queues.read(seen, room=32, default=8, max_connections=None).kind == "assumed"


class Silent(Hidden):
    """Says nothing of times."""

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        seen = super().observe(seq)
        return tb.Trace(seq, seen.device, [tb.Placement(p.smid) for p in seen.placements])


def test_without_times_no_latency_is_told() -> None:
    spec = gpu(2, "tx2")
    found = calibrated(Silent(spec), 0)
    assert not any(finding.path.endswith("_ns") for finding in found.report)
    failures = {step.probe: step.failure for step in found.steps if step.failure}
    assert "does not say when blocks started" in failures["latencies"]
    assert wrong(found, spec) == []


def test_clusters_that_a_gpc_is_too_small_for_leave_the_largest_open() -> None:
    # The only map with a GPC that is large enough has a TPC too many.
    assert largest_gpc({"sms_per_tpc": 2, "gpcs": ((0, 1, 2, 3),)}, sms=7) == 7
    assert largest_gpc({"sms_per_tpc": 1, "gpcs": ()}, sms=7) == 0


class Reversed(Hidden):
    """Takes the last SM first where a launch has two blocks: no row of the table does."""

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        seen = super().observe(seq)
        sms = self.spec.sms
        placements = [
            tb.Placement((sms - 1 - p.smid) % sms if (p.smid >= 0).all() and len(p.smid) == 2
                         else p.smid)
            for p in seen.placements
        ]  # fmt: skip
        return tb.Trace(seq, seen.device, placements)


def test_policy_that_is_no_row_ends_in_no_rule_and_the_smallest_disagreement() -> None:
    found = calibrated(Reversed(tb.device("xavier")))
    finding = found.finding("scheduler.policy")
    assert finding.kind != TOLD
    assert "no rule fits; the smallest disagreement: Sequence([" in finding.because
    assert not found.certificate.holds
    assert found.campaign is not None
    assert len(found.campaign.counterexamples[0].sequence.launches) <= 2
    assert "the smallest disagreement" in str(found)


class Busy(Hidden):
    """Keeps several sequences under way, as an open GPU does; sometimes a run says nothing."""

    def __init__(self, device: str) -> None:
        super().__init__(tb.device(device))
        self.runs = 0

    def observe_many(
        self, sequences: Iterable[tb.Sequence], /, *, settle: float = 0.0
    ) -> Generator[tb.Trace | tb.UnstableMeasurement, None, None]:
        for sequence in sequences:
            self.runs += 1
            if self.runs % 50 == 0:
                yield tb.UnstableMeasurement("another run differed")
            else:
                yield self.observe(sequence)


def test_runs_that_say_nothing_are_repeated() -> None:
    found = calibrated(Busy("xavier"), 0)
    assert wrong(found, tb.device("xavier")) == []
    assert found.finding("scheduler.policy").value == "ampere"
    assert found.certificate.miss_rate == 1.0
    assert not found.certificate.holds


class Killed(Hidden):
    """Ends like a process that is killed, after so many runs."""

    def __init__(self, device: str | tb.DeviceSpec, most: int) -> None:
        super().__init__(tb.device(device), tick=0)
        self.runs, self.most = 0, most

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        self.runs += 1
        if self.runs > self.most:
            raise RuntimeError("killed")
        return super().observe(seq)


def test_killed_calibration_goes_on_with_the_same_result(tmp_path: Path) -> None:
    kept = tmp_path / "seen.jsonl"
    whole = Killed("xavier", 10_000)
    expected = tb.calibrate(whole, LONG, sequences=20, progress=False)
    with pytest.raises(RuntimeError, match="killed"):
        tb.calibrate(Killed("xavier", whole.runs // 2), LONG, evidence=kept, progress=False)
    with kept.open("ab") as file:
        file.write(b'{"id":"torn","ev')
    again = Killed("xavier", 10_000)
    with pytest.warns(UserWarning, match="its last line .* was cut"):
        found = tb.calibrate(again, LONG, sequences=20, evidence=kept, progress=False)
    assert found.report == expected.report
    assert found.witnesses == expected.witnesses
    assert found.certificate == expected.certificate
    assert again.runs < whole.runs * 0.6
    with pytest.raises(ValueError, match="give another file"):
        tb.calibrate(Hidden(tb.device("tx2")), LONG, evidence=kept, progress=False)


def test_calibration_killed_in_its_campaign_goes_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "_PART", 20)
    spec = gpu(2, "tx2")
    kept = tmp_path / "seen.jsonl"
    whole = Killed(spec, 10_000)
    expected = tb.calibrate(whole, LONG, sequences=60, progress=False)
    with pytest.raises(RuntimeError, match="killed"):
        tb.calibrate(
            Killed(spec, whole.runs - 10), LONG, sequences=60, evidence=kept, progress=False
        )
    again = Killed(spec, 10_000)
    found = tb.calibrate(again, LONG, sequences=60, evidence=kept, progress=False)
    assert again.runs <= 22  # the last part, and which board it is
    assert found.certificate == expected.certificate
    assert (found.certificate.sequences, found.certificate.holds) == (60, True)
    # Another seed draws other sequences.
    other = Killed(spec, 10_000)
    tb.calibrate(other, LONG, sequences=40, seed=1, evidence=kept, progress=False)
    assert other.runs > 40


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"ways": None}, "iterable"),
        ({"examples": "many"}, "examples: an integer is needed, got 'many'"),
        ({"seconds": float("nan")}, "seconds: nan is outside"),
        ({"unstable": [3]}, "unpack"),
    ],
)
def test_evidence_of_a_campaign_that_is_damaged_is_refused(
    tmp_path: Path, damage: dict[str, Any], words: str
) -> None:
    kept = tmp_path / "seen.jsonl"
    drawn_once: dict[str, Any] = {"sequences": 3, "evidence": kept, "progress": False}
    tb.calibrate(gpu(2, "tx2"), LONG, **drawn_once)
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    (part,) = [line["compared"] for line in lines if "compared" in line]
    part |= damage
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match=rf"evidence: .*seen\.jsonl: .* damaged \(.*{words}"):
        tb.calibrate(gpu(2, "tx2"), LONG, **drawn_once)


def test_no_sequence_of_a_campaign_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although parts come back with fewer than were asked: a worker died, or the time was over."""
    drawn: list[int] = []

    def losing(*oracle_and_spec: Any, begin: int, max_examples: int, **others: Any) -> Report:
        drawn.extend(range(begin, begin + max_examples))
        fewer = max(max_examples - 5, 1)
        return tb.fuzz(*oracle_and_spec, begin=begin, max_examples=fewer, **others)

    monkeypatch.setattr(campaign, "_PART", 20)
    monkeypatch.setattr(campaign, "fuzz", losing)
    spec = gpu(2, "tx2")
    asked = Campaign(spec, LONG, 60, 0, None, progress=False)
    found = asked.run(spec, Journal(None))
    assert found is not None
    assert (found.examples, found.ended) == (60, "examples")
    assert len(drawn) == len(set(drawn))


class Picky(Hidden):
    """Refuses what the probes do not ask: threads that are no whole warps, behind others."""

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        if any(launch.threads % 32 for launch in seq.launches[1:]):
            raise ValueError("no such threads here")
        return super().observe(seq)


def test_campaign_that_the_oracle_refuses_gives_no_certificate() -> None:
    found = calibrated(Picky(gpu(2, "tx2")))
    assert found.certificate.refusal == "no such threads here"
    assert not found.certificate.holds
    assert found.campaign is None
    assert "the oracle refused a sequence that the device allows" in str(found)
    assert all(finding.kind != TOLD for finding in found.report if "every other" in finding.because)


class Unsteady(ModelGpu):
    """Its first run says nothing."""

    looked = False

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        if not self.looked:
            self.looked = True
            raise tb.UnstableMeasurement("another run differed")
        return super().observe(seq)


@pytest.mark.parametrize("oracle", [ModelGpu, Unsteady])
def test_evidence_of_another_board_of_the_same_name_is_refused(
    tmp_path: Path, oracle: type[ModelGpu]
) -> None:
    kept = tmp_path / "seen.jsonl"
    with TraceFile(kept) as file:
        file.append(tb.predict(tb.Sequence([tb.Launch(1, 32, 16)]), "rtx3090"))
    held = kept.read_bytes()
    other = oracle("rtx3090-no-warp-skip")
    assert other.spec.title == tb.device("rtx3090").title
    with pytest.raises(ValueError, match="its model is 'rtx3090', and that of the oracle is"):
        tb.calibrate(other, LONG, sequences=0, evidence=kept, progress=False)
    assert kept.read_bytes() == held


def test_evidence_that_ends_between_two_runs_of_one_sequence_is_gone_on_with(
    tmp_path: Path,
) -> None:
    oracle = Hidden(tb.device("xavier"))
    sequence = tb.Sequence([tb.Launch(3, 32, 16)])
    with TraceFile(tmp_path / "seen.jsonl") as file:
        file.append(oracle.observe(sequence))
    with TraceFile(tmp_path / "seen.jsonl") as file:
        lab = Lab(oracle, LONG, lambda _: None, Journal(file))
        assert len(lab.run([sequence, sequence])) == 2


def test_without_time_for_the_first_probe_there_is_no_device() -> None:
    with pytest.raises(ValueError, match="the time was over"):
        tb.calibrate(Hidden(tb.device("xavier")), 1e-9, progress=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seconds", float("inf")), ("seconds", -1.0), ("sequences", -1), ("seed", -1)],
)
def test_numbers_out_of_range_are_refused_before_anything_is_asked(name: str, value: float) -> None:
    asked: dict[str, Any] = {"seconds": LONG, name: value}
    with pytest.raises(ValueError, match=rf"calibrate\.{name}: .* is outside 0"):
        tb.calibrate(Killed("tx2", 0), **asked, progress=False)


def test_views_have_every_finding(h200: Calibration) -> None:
    text = str(h200)
    data = json.loads(json.dumps(views.data(h200)))
    assert [row["path"] for row in data["findings"]] == [f.path for f in h200.report]
    assert all(finding.path in text for finding in h200.report)
    assert data["certificate"]["holds"] is True
    assert len(h200.to_pandas()) == len(h200.report)
    assert f"{len(h200.told)} values told" in repr(h200)
