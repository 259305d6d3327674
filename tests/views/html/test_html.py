"""The HTML of every value: well-formed, by itself, and with the text that ``print`` shows."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tbsched as tb
from helpers import gpu, launch, recorded
from tbsched import views
from tbsched.views.sequences import rows_of, rows_table
from views.gallery import GALLERY, KERNELS, held, large, thousand, timed

SLOW = {"large"}
HOSTILE = "</style><script>alert('1')</script>&\"<u>\n\x00\ud800]]>" + "a<T, 'U'>::" * 200


def parsed(value: object) -> ElementTree.Element:
    """What is shown; it must be well-formed, which HTML alone need not be."""
    return ElementTree.fromstring(views.html(value))


def words(root: ElementTree.Element) -> str:
    """All text but for the style, blanks as one."""
    for parent in root.iter():
        for child in [each for each in parent if each.tag == "style"]:
            parent.remove(child)
    return " ".join(" ".join(root.itertext()).split())


def titles(root: ElementTree.Element) -> Iterator[str]:
    """What is shown when the mouse is over something."""
    for element in root.iter():
        if element.tag == "title":
            yield element.text or ""
        yield element.get("title", "")


@pytest.fixture(scope="module")
def gallery() -> dict[str, Any]:
    return {name: make() for name, make in GALLERY.items() if name not in SLOW}


def test_each_class_that_is_shown_is_in_the_gallery(gallery: dict[str, Any]) -> None:
    assert {type(value).__name__ for value in gallery.values()} == set(views.SHOWN)


@pytest.mark.parametrize("name", sorted(GALLERY.keys() - SLOW))
def test_html_is_well_formed_and_needs_nothing_else(gallery: dict[str, Any], name: str) -> None:
    text = views.html(gallery[name])
    root = ElementTree.fromstring(text)
    assert (root.tag, root.get("class")) == ("div", "tbsched")
    assert len(root.findall("h2")) == 1
    assert not re.search(r"http|@import|url\(|<script|<link|<img|\sid=|\son\w+=", text)
    assert len(text.encode()) < 600_000
    assert gallery[name]._repr_html_() == text


@pytest.mark.parametrize("name", sorted(GALLERY.keys() - SLOW))
def test_short_text_is_one_line(gallery: dict[str, Any], name: str) -> None:
    short = views.short(gallery[name])
    assert "\n" not in short
    assert 0 < len(short) < 200
    assert short in repr(gallery[name]) or isinstance(
        gallery[name], tb.Sequence | tb.Graph | tb.Partition
    )


def test_style_reaches_nothing_outside() -> None:
    style = re.search("<style>(.*?)</style>", views.html(held()), re.DOTALL)
    assert style is not None
    selectors = re.findall(r"([^{}]+){", style[1])
    assert len(selectors) > 40
    for selector in ",".join(selectors).split(","):
        assert ".tbsched" in selector.split(" svg ")[0], selector


def test_text_is_that_of_print() -> None:
    shown = words(parsed(timed()))
    for row in rows_table([*rows_of(timed())]).rows:
        for cell in row:
            assert len(cell) > 30 or cell in shown
    trace = tb.predict(timed(1), "h200")
    shown = words(parsed(trace))
    assert str(trace).splitlines()[0] in shown
    for number in range(len(trace)):
        assert trace.explain(number) in shown
    diff = GALLERY["diff"]()
    shown = words(parsed(diff))
    first, *lines = str(diff).splitlines()
    assert first in shown
    assert lines[-1] in shown
    assert words(parsed(tb.forced_even("h200", launch()))).startswith("even: there is one block")


def test_long_tables_say_what_they_leave_out() -> None:
    many = tb.Sequence([launch(name=f"k{number}") for number in range(60)])
    assert "and 10 rows more" in words(parsed(many))
    assert "and 10 launches more" in words(parsed(tb.predict(many, gpu(4))))
    assert "and 48 more" in words(parsed(tb.predict(many, gpu(4))))


@pytest.mark.parametrize(
    "value",
    [
        lambda one, other: tb.Sequence([one, other]),
        lambda one, other: tb.predict(tb.Sequence([one, other]), gpu(2)),
        lambda one, other: tb.predict(
            tb.Sequence([dataclasses.replace(x, stream=0, duration=1e-3) for x in (one, other)]),
            gpu(2),
        ),
        lambda one, other: tb.predict(tb.Sequence([one, other]), gpu(2)).residents(),
        lambda one, other: tb.compare(
            tb.predict(tb.Sequence([one, other]), gpu(4)),
            tb.predict(tb.Sequence([one, other]), gpu(4), "first_fit"),
        ),
        lambda one, other: tb.what_if(
            tb.Sequence([dataclasses.replace(x, duration=1e-3) for x in (one, other)]), gpu(2)
        ),
        lambda one, other: tb.best_order(
            [dataclasses.replace(x, duration=1e-3) for x in (one, other)], gpu(2)
        ),
        lambda one, other: dataclasses.replace(gpu(2), title=one.name),
    ],
)
def test_names_cannot_become_markup(value: Any) -> None:
    shown = value(launch(3, name=HOSTILE), launch(17, 8, name=HOSTILE[::-1]))
    text = views.html(shown)
    assert "<script" not in text
    assert "<u>" not in text
    assert "\x00" not in text
    everything = words(root := parsed(shown)) + "".join(titles(root))
    assert "</style><script>alert(" in everything
    assert len(text) < 60_000
    text.encode()


def test_map_says_why_blocks_are_on_an_sm_and_what_binds_it() -> None:
    events = [launch(3, name="first"), launch(40, 2, name="second"), launch(9, name="third")]
    trace = tb.predict(tb.Sequence(events), gpu(2))
    found = next(title for title in titles(parsed(trace)) if title.startswith("SM 0, TPC 0: "))
    assert found.splitlines() == [
        "SM 0, TPC 0: 16 blocks",
        "launch 0 first: 2 blocks; room for 16 blocks when it came, the most, as 1 other SM had",
        "launch 1 second: 14 blocks; room for 14 blocks when it came, 1 SM had more",
        "place 1 of 2 in the order of preference",
        "bound most by thread block slots: 16 of 16 (100 %)",
        "no more of launch 1, which waits, came here: no thread block slot is free",
    ]
    shown = words(parsed(trace))
    assert "Waiting: 11 blocks of launch 1 (second): no thread block slot is free; " in shown
    assert "A full tile is 16 blocks, the most on any SM." in shown


def test_launches_are_shown_sm_by_sm() -> None:
    trace = tb.predict(tb.Sequence([launch(20, name="a"), launch(9), launch(30, 9)]), gpu(3))
    root = parsed(trace)
    found = [title for title in titles(root) if re.search(r"\n\d+ SMs? with ", title)]
    assert found == [
        "launch 0 a\n1 SM with 6 blocks", "launch 0 a\n2 SMs with 7 blocks each",
        "launch 1\n3 SMs with 3 blocks each", "launch 2\n3 SMs with 4 blocks each",
    ]  # fmt: skip
    many = tb.predict(tb.Sequence([launch()] * 30), gpu(3))
    assert "the more blocks the SM has. And 6 launches more." in words(parsed(many))


def test_map_of_an_observation_says_what_is_known() -> None:
    shown = parsed(recorded("rall")[0])
    assert any(re.match(r"SM 5, TPC 2, GPC \d: ", title) for title in titles(shown))
    assert "The map is that of h200; other boards may have another." in words(shown)


def test_sequence_that_is_released_is_shown_before_that() -> None:
    events = [launch(4), launch(2), tb.Release(0), tb.Release(1)]
    assert "Blocks on each SM, after 2 of 4 events" in words(
        parsed(tb.predict(tb.Sequence(events), gpu(2)))
    )


def test_timelines_say_what_launches_waited_for() -> None:
    events = [launch(16, stream=0, duration=1e-3, name="a"), launch(stream=0, duration=1e-3)]
    trace = tb.predict(tb.Sequence(events), gpu())
    found = [title for title in titles(parsed(trace)) if title.startswith("launch 1\n")]
    assert set(found) == {
        "launch 1\n1 x 32, 16 regs, stream 0, 1 ms\nran from 1 ms to 2 ms\n"
        "waited 1 ms, mostly for stream"
    }
    shown = words(parsed(trace))
    assert "1 1 ms 100 % the launch before it in its stream has not finished launch 0 a" in shown


@pytest.mark.parametrize("name", ["held-1000", "timed-1000", "device-1000", "diff-1000"])
def test_thousand_sms_stay_small(gallery: dict[str, Any], name: str) -> None:
    root = parsed(gallery[name])
    assert any("SM 999, TPC 499, GPC 9" in title for title in titles(root))
    assert thousand().sms == 1000


def test_a_million_blocks_are_put_together_and_it_is_said() -> None:
    trace = large()
    text = views.html(trace)
    assert len(text.encode()) < 1_000_000
    shown = words(ElementTree.fromstring(text))
    assert "1,000,000 blocks and 1,000 SMs in 143 rows in 9,867 bins" in shown
    assert "100,000 launches in 9,600 bins: a bin shows the launch that took most of it" in shown
    assert "and 99,950 launches more" in shown


def test_page_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    page = tb.show.to_html(gpu(2), path)
    assert path.read_text("utf-8") == page
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>"))
    assert root.findtext("head/title") == views.short(gpu(2))
    assert root.find("body/div[@class='tbsched']") is not None
    assert tb.show.to_html(gpu(2)) == page


@pytest.mark.parametrize(
    ("value", "path", "kind", "words"),
    [
        (1, None, TypeError, "views: int is not one of BestOrder"),
        (held(), 3, TypeError, "path: a string or a path is needed, got 3"),
        (held(), "/", ValueError, "/: cannot be written: is a folder"),
        (held(), "/nowhere/a.html", FileNotFoundError, "no such folder"),
    ],
)
def test_page_that_cannot_be(value: object, path: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        tb.show.to_html(value, path)


def test_folder_has_the_functions_of_the_table() -> None:
    for file, word in views.SHOWN.values():
        module = importlib.import_module(f"tbsched.views.{file}")
        assert callable(getattr(module, f"{word}_html"))


def test_kernels_of_the_gallery_are_cut_where_they_are_long() -> None:
    assert any(len(kernel.name or "") > 100 for kernel in KERNELS)
    shown = words(root := parsed(timed()))
    assert str(KERNELS[0].name) not in shown
    assert KERNELS[0].name in set(titles(root))


def test_what_a_large_program_leaves_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    few = views.html(tb.predict(tb.Sequence([tb.Launch(4, 32, 32)]), "h200"))
    assert "too large to say" not in few
    assert "too many launches to say" not in few
    monkeypatch.setattr("tbsched.views.layout.sms._MAX_REPLAYED", 3)
    monkeypatch.setattr("tbsched.views.layout.sms._MAX_CAPACITIES", 0)
    large = views.html(tb.predict(tb.Sequence([tb.Launch(4, 32, 32)]), "h200"))
    assert "The program is too large to say here what binds each SM." in large
    assert "too many launches to say here what room each SM had" in large
