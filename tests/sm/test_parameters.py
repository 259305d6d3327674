"""Simulated GPUs: files, values and where they come from."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from helpers import ROOT
from sm.machines import OWL, small
from tbsched.sm.code import measured
from tbsched.sm.generator import preset
from tbsched.sm.parameters import PARAMETERS, config, configs
from tbsched.sm.running import simulate

FOLDER = ROOT / "python" / "tbsched" / "sm" / "configs"


def test_defaults_of_cpp_are_the_paper_s_gpu() -> None:
    assert dict(OWL.values) == {row.name: row.default for row in PARAMETERS.values()}


@pytest.mark.parametrize("name", configs())
def test_every_value_says_where_it_comes_from(name: str) -> None:
    gpu = config(name)
    assert gpu.values.keys() == gpu.provenance.keys() == PARAMETERS.keys()
    assert all(origin.source for origin in gpu.provenance.values())
    assert simulate(preset("SCP", blocks=8), "round_robin", gpu).ipc > 0


def test_config_goes_through_the_names_of_its_parameters() -> None:
    assert [*OWL] == [*PARAMETERS]
    assert {name: OWL[name] for name in OWL} == OWL.values


def test_figures_go_through_their_opcodes() -> None:
    found = measured("h200")
    assert [found[name] for name in found] == [*found.figures]


def test_config_is_changed_and_pickled() -> None:
    changed = OWL.changed(banks=8, crossbar=True)
    assert (changed["banks"], changed["crossbar"], OWL["banks"]) == (8, 1, 4)
    assert changed.provenance["banks"].source == "changed by the caller"
    assert dict(pickle.loads(pickle.dumps(changed)).values) == dict(changed.values)
    assert repr(OWL) == "<Config: owl-table1, 28 cores, 8 controllers>"


def test_file_is_read(tmp_path: Path) -> None:
    text = (FOLDER / "owl-table1.toml").read_text("utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("banks = { value = 4", "banks = { value = 16"), "utf-8")
    assert (config(path)["banks"], config(path).name) == (16, "mine")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\nbanks = {", "\nbenks = {", r"dram: banks is missing"),
        ("value = 1300", "value = 0", r"config\.core_mhz: 0 is outside 1\.\.100000"),
        ('provenance = "paper"', 'provenance = "rumour"', "provenance is none of paper, vendor"),
        ("[dram]", "[dram", "mine.toml: "),
        ('provenance = "paper", ', "", "provenance is missing"),
    ],
)
def test_wrong_file_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((FOLDER / "owl-table1.toml").read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(ValueError, match=words):
        config(path)


def test_unknown_names_and_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"owl-tabel1.* is unknown; .* did you mean 'owl-table1'"):
        config("owl-tabel1")
    with pytest.raises(ValueError, match=r"no file .*none\.toml"):
        config("none.toml")
    with pytest.raises(TypeError, match="a name, a path or a Config is needed, got 3"):
        config(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"bank.* is no parameter"):
        OWL.changed(bank=3)
    with pytest.raises(ValueError, match=r"config\.banks: 100 is outside 1\.\.64"):
        OWL.changed(banks=100)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"l1_bytes": 100}, r"l1_bytes: 100 is no multiple of line_bytes \* l1_ways, \d+"),
        ({"l2_bytes": 100}, r"l2_bytes: 100 is no multiple of line_bytes \* l2_ways, \d+"),
        ({"channel_interleave": 100}, "channel_interleave: 100 is no multiple of line_bytes, 64"),
        ({"bank_interleave": 100}, "bank_interleave: 100 is no multiple of line_bytes, 64"),
        ({"row_bytes": 320}, "row_bytes: 320 is no multiple of bank_interleave, 256"),
        ({"bus_bytes": 24}, r"are no multiple of 2 \* bus_bytes"),
        ({"line_sectors": 3}, "line_sectors: 3 is not 1, 2 or 4"),
        ({"l2_fetch_sectors": 2}, "line_sectors: 1 is no multiple of l2_fetch_sectors, 2"),
        ({"cores": 3}, r"cores: 3 and controllers, \d+, are more than the mesh has nodes"),
        (
            {"controllers_at_edges": 1, "controllers": 5, "mesh_height": 9},
            r"controllers: 5 at the edges are more than two rows",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused(values: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=rf"config[.:].*{words}"):
        simulate(preset("SCP", blocks=8), "round_robin", small(**values))
