"""The GPU here as a device, with models that play boards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from calibration.hidden import Hidden, drawn
from calibration.maps import outcome
from helpers import Fake, examples, run_on_fake
from tbsched.calibration.boards import here
from tbsched.campaigns.shrinking.pasted import predicting
from tbsched.cli.app import app
from tbsched.launcher.observe import Gpu
from tbsched.launcher.query import Queried
from tbsched.traces.placement import DeviceInfo

H200 = tb.device("h200")
first, second, *rest = H200.gpcs
MOVED = replace(H200, gpcs=((*first, second[-1]), second[:-1], *rest))
SEQUENCE = tb.Sequence(
    [tb.Launch(100, 256, 32), tb.Launch(96, 64, 40, cluster=8), tb.Launch(40, 512, 64, cluster=2)]
)


class Board(Hidden):
    """Plays GPU 0."""

    def __init__(self, spec: tb.DeviceSpec) -> None:
        super().__init__(spec)
        self.runs = 0
        self.driver = "580.1"
        self.uuid = "GPU-1"
        self.mps = False

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        self.runs += 1
        return super().observe(seq)

    def resident(self, launch: tb.Launch) -> int:
        return int(launch.cluster <= self.spec.max_cluster)

    def queried(self, gpu: int) -> Queried:
        assert gpu == 0
        names = (
            "sms", "blocks_per_sm", "warps_per_sm", "registers_per_sm", "threads_per_block",
            "shared_memory_reserve", "shared_memory_per_block", "copy_engine_count",
        )  # fmt: skip
        details = {
            "compute_capability": self.spec.compute_capability,
            "driver": self.driver,
            "uuid": self.uuid,
        }
        return Queried(
            DeviceInfo(self.spec.title, self.spec.sms, details),
            {name: getattr(self.spec, name) for name in names},
            self.spec.shared_memory_configurations[-1],
            self.spec.max_cluster > 1,
            self.mps,
        )

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        pass


Plug = Callable[[tb.DeviceSpec], Board]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    here.device_here.cache_clear()
    yield tmp_path / "cache" / "tbsched" / "boards"
    here.device_here.cache_clear()


@pytest.fixture
def plug(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Plug:
    """Puts a board in the place of GPU 0."""

    def put(spec: tb.DeviceSpec) -> Board:
        board = Board(spec)
        here.device_here.cache_clear()
        monkeypatch.setattr(here, "queried", board.queried)
        monkeypatch.setattr(here, "Gpu", lambda _: board)
        monkeypatch.setattr(here, "largest_cluster", lambda _: spec.max_cluster)
        # On a busy machine a model takes longer than the GPU that it plays.
        monkeypatch.setattr("tbsched.calibration.boards.map.SECONDS", 3600.0)
        return board

    return put


def test_board_as_the_shipped_one_has_its_rules_and_a_measured_map(plug: Plug, cache: Path) -> None:
    plug(H200)
    spec = tb.device("gpu")
    assert replace(spec, name="h200") == H200
    for path in ("topology.gpcs", "topology.sm_preference", "limits.max_cluster", "topology.sms"):
        assert spec.provenance[path].kind == "measured"
    assert spec.provenance["scheduler.policy"] == replace(
        H200.provenance["scheduler.policy"],
        kind="inherited", source="h200", checked="by the recordings of h200",
    )  # fmt: skip
    assert spec.assumed_rules == H200.assumed_rules  # another board of the same GPU
    assert [path.relative_to(cache) for path in cache.rglob("*.toml")] == [Path("GPU-1/580.1.toml")]


def test_board_with_one_copy_engine_for_both_directions_says_so(plug: Plug) -> None:
    plug(replace(H200, copy_engine_count=1))
    spec = tb.device("gpu")
    assert replace(spec, name="h200") == replace(H200, copy_engine_count=1, copy_channels=1)
    kinds = [spec.provenance[f"scheduler.copy_{x}"].kind for x in ("engine_count", "channels")]
    assert kinds == ["measured", "assumed"]


def test_board_with_another_map_warns_and_is_predicted(plug: Plug) -> None:
    plug(MOVED)
    with pytest.warns(UserWarning, match="its map differs from that of h200 in gpcs: boards"):
        spec = tb.device("gpu")
    assert replace(spec, name="h200") == MOVED
    assert tb.compare(tb.predict(SEQUENCE, "gpu"), tb.predict(SEQUENCE, MOVED)).exact
    assert not tb.compare(tb.predict(SEQUENCE, "gpu"), tb.predict(SEQUENCE, H200)).exact


def test_map_is_measured_once_for_a_board_and_a_driver(plug: Plug) -> None:
    def runs(spec: tb.DeviceSpec, **changes: str) -> int:
        board = plug(spec)
        for name, value in changes.items():
            setattr(board, name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert tb.device("gpu").gpcs == spec.gpcs
            assert tb.device("gpu").provenance["topology.gpcs"].source.startswith("on this board")
        return board.runs

    once = runs(H200)
    assert once > 100
    assert runs(H200) == 0
    assert runs(MOVED, uuid="GPU-2") > 0
    assert runs(MOVED, uuid="GPU-2") == 0
    assert runs(H200, driver="590.2") == once
    assert runs(H200) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no TOML",
        'extends = "gpu"\n[topology]\ngpcs = 3\n',
        "[device]\n",
        'extends = "gpu"',
        None,
    ],
)
def test_kept_map_that_makes_no_sense_is_measured_again(
    plug: Plug, cache: Path, text: str | None
) -> None:
    plug(H200)
    spec = tb.device("gpu")
    (path,) = cache.rglob("*.toml")
    good = path.read_text("utf-8")
    if text is None:  # without some SMs
        text = good.replace("[[124, ", "[[126, ")
    assert text != good
    path.write_text(text, "utf-8")
    plug(H200)
    assert tb.device("gpu") == spec
    assert path.read_text("utf-8") == good


def test_smaller_board_of_the_kind_has_a_map_of_its_own(plug: Plug) -> None:
    order = (*range(110, 114), *range(0, 110, 2), *range(1, 110, 2))
    gpcs = tuple(tuple(tpc for tpc in gpc if tpc < 55) for gpc in H200.gpcs)
    plug(replace(H200, title="NVIDIA H100 PCIe", sms=114, gpcs=gpcs, sm_preference=order))
    with pytest.warns(UserWarning, match="that of h100 in sms, gpcs, sm_preference"):
        spec = tb.device("gpu")
    assert (spec.sms, spec.gpcs, spec.sm_preference) == (114, gpcs, order)
    assert spec.provenance["mechanisms.warp_skip"].source == "h100"


def test_compute_capability_that_is_not_shipped_warns_that_the_rules_are_assumed(
    plug: Plug,
) -> None:
    limits = tb.describe(compute_capability="8.9", sms=20, title="NVIDIA L4")
    plug(replace(limits, sm_preference=tuple(range(19, -1, -1))))
    with pytest.warns(UserWarning, match=r"capability 8\.9\. The rules are assumed to be those of"):
        spec = tb.device("gpu")
    assert (spec.blocks_per_sm, spec.sm_preference) == (24, tuple(range(19, -1, -1)))
    assert spec.provenance["scheduler.policy"].kind == "assumed"


def test_board_with_other_rules_is_noticed_and_not_kept(plug: Plug, cache: Path) -> None:
    plug(replace(tb.device("h200-clusters-in-gpcs"), title=H200.title))
    with pytest.warns(UserWarning, match=r"of \d+ sequences that show the map, \d+ went otherwise"):
        assert tb.device("gpu").gpcs == H200.gpcs
    assert not cache.exists()


class Unstable(Board):
    """Never agrees with itself."""

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        raise tb.UnstableMeasurement("another run differed")


def test_board_that_shows_no_map_has_the_shipped_one(
    plug: Plug, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug(H200)
    monkeypatch.setattr(here, "Gpu", lambda _: Unstable(H200))
    with pytest.warns(UserWarning, match="could not be measured: the oracle did not agree"):
        spec = tb.device("gpu")
    assert (spec.gpcs, spec.provenance["topology.gpcs"].kind) == (H200.gpcs, "inherited")
    assert not cache.exists()


def test_map_under_mps_is_not_kept(plug: Plug, cache: Path) -> None:
    plug(H200).mps = True
    assert tb.device("gpu").gpcs == H200.gpcs
    assert not cache.exists()


def test_cache_that_cannot_be_written_only_warns(
    plug: Plug, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/none")
    plug(H200)
    with pytest.warns(UserWarning, match="its map is not kept"):
        assert tb.device("gpu").gpcs == H200.gpcs


def test_user_without_a_home_is_only_warned(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    plug(H200)
    with pytest.warns(UserWarning, match="its map is not kept"):
        assert tb.device("gpu").gpcs == H200.gpcs


def test_name_works_where_a_device_is_named(plug: Plug, tmp_path: Path) -> None:
    plug(H200)
    assert not tb.device("gpu-no-warp-skip").mechanisms.warp_skip
    with pytest.raises(ValueError, match=r"'gpu' has no ablation 'no-warp-skp'.*did you mean"):
        tb.device("gpu-no-warp-skp")
    (tmp_path / "mine.toml").write_text('extends = "gpu"\n')
    assert tb.device(tmp_path / "mine.toml").gpcs == H200.gpcs
    tb.save_device(tmp_path / "gpu.toml", tb.device("gpu"))
    assert tb.device(tmp_path / "gpu.toml") == tb.device("gpu")

    def status(*arguments: str) -> int:
        result = CliRunner().invoke(app, arguments, standalone_mode=False)
        assert result.exception is None
        return int(result.return_value or 0)

    assert status("devices", "--diff", "gpu", "h200") == 0
    assert status("devices", "gpu") == 0
    assert status("configs", "8448", "--device", "gpu") == 0


def test_pasted_test_does_not_depend_on_the_gpu_there(plug: Plug) -> None:
    plug(H200)
    for named in ("gpu", tb.device("gpu")):
        code = predicting(named, None, None)
        assert code.text == "predict(seq, replace(device(\"h200\"), name='gpu'))"


@pytest.mark.parametrize("seed", range(examples(60)))
def test_map_of_a_hidden_board_is_found_or_does_not_agree(seed: int) -> None:
    assert outcome(drawn(seed, most_sms=64)) in ("right, agrees", "WRONG, noticed")


def test_gpu_that_a_driver_emulates_is_measured(fake_gpu: tuple[Gpu, Fake], cache: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec = tb.device("gpu")
    assert (spec.name, spec.title, spec.sms) == ("gpu", "Fake GPU", 4)
    assert fake_gpu[0].observe(tb.Sequence([tb.Launch(4, 32, 16)]))[0].placed == 4


def test_without_a_gpu_it_says_what_was_looked_for(cache: Path) -> None:
    code = """
import tbsched as tb
for ask in (lambda: tb.device("gpu"), lambda: tb.predict(tb.Sequence([]), "gpu"), tb.describe):
    try:
        ask()
    except tb.NoGpuError as error:
        print(error)
"""
    found = run_on_fake(code, cache / "none.so")
    assert found.stdout.count("looked for the CUDA driver") == 3
