"""What all pictures promise: axes of the user's, shown in notebooks, with legends of any length."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tbsched as tb
from helpers import gpu, launch

pytest.importorskip("matplotlib")

HELD = tb.predict(tb.Sequence([launch(3, name="a$b"), launch(2)]), gpu(sms=2))
TIMED = tb.predict(tb.Sequence([launch(3, duration=1e-3, name="a$b")]), gpu(sms=2))
PICTURES: dict[str, Callable[..., Any]] = {
    "gantt": lambda **ax: tb.show.gantt(TIMED, **ax),
    "sm_map": lambda **ax: tb.show.sm_map(HELD, **ax),
    "sm_map of a device": lambda **ax: tb.show.sm_map(gpu(sms=2), **ax),
    "blocks": lambda **ax: tb.show.blocks(HELD, **ax),
    "compared": lambda **ax: tb.show.compared(HELD, HELD, **ax),
    "compared over time": lambda **ax: tb.show.compared(TIMED, TIMED, **ax),
    "ladder": lambda **ax: tb.show.ladder([tb.verify([HELD], gpu(sms=2))], **ax),
    "resources": lambda **ax: tb.show.resources(HELD, 0, **ax),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_drawn_into_the_axes_that_are_given(name: str) -> None:
    from matplotlib.figure import Figure

    _, mine = Figure(layout="constrained").subplots(1, 2)
    assert PICTURES[name](ax=mine) is mine
    assert mine.has_data() or mine.texts
    with pytest.raises(TypeError, match="ax: a matplotlib Axes or None is needed, got 'mine'"):
        PICTURES[name](ax="mine")


@pytest.mark.parametrize("name", ["gantt", "resources"])
def test_notebook_shows_the_axes_without_pyplot(name: str) -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    ax = PICTURES[name]()
    data, metadata = formatters.DisplayFormatter().format(ax)
    assert data["image/png"].startswith(b"\x89PNG")
    width, height = ax.figure.get_size_inches() * ax.figure.dpi
    assert metadata["image/png"] == {"width": round(width), "height": round(height)}
    assert "matplotlib.pyplot" not in sys.modules


def legend_of(ax: Any) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_legend_has_the_kernels_that_took_most_and_counts_the_others() -> None:
    times = [launch(duration=(number + 1) * 1e-4, name=f"k{number}") for number in range(60)]
    words = legend_of(tb.show.gantt(tb.predict(tb.Sequence(times), gpu(sms=2))))
    assert words[:2] == ["k59", "k58"]
    assert words[-1] == f"and {60 - len(words) + 1} more"
    assert 4 <= len(words) < 60


def test_launches_of_one_name_are_one_kernel_and_others_are_told_apart() -> None:
    events = [launch(1, duration=1e-3, name=name) for name in ("gemm", "gemm", None, None)]
    ax = tb.show.gantt(tb.predict(tb.Sequence(events), gpu(sms=2)))
    words = "1 x 32, 16 regs, 1 ms"
    assert legend_of(ax) == ["gemm (2)", f"2: {words}", f"3: {words}"]
    assert ax.get_legend().get_title().get_text() == "kernel (launches)"


def test_names_that_are_alike_when_cut_have_the_number_of_a_launch() -> None:
    names = [f"void kernel_{'x' * 40}{k}{'y' * 40}" for k in (1, 2)]
    events = [launch(1, duration=1e-3, name=name) for name in names]
    words = legend_of(tb.show.gantt(tb.predict(tb.Sequence(events), gpu(sms=2))))
    assert [word.partition(":")[0] for word in words] == ["0", "1"]


def test_colours_of_text_follow_the_style_of_the_user() -> None:
    from matplotlib import rc_context

    with rc_context({"text.color": "white", "axes.facecolor": "black"}):
        ax = tb.show.sm_map(HELD)
    numbers = [text for text in ax.texts if text.get_text().isdigit()]
    assert {text.get_color() for text in numbers} == {"white"}


def test_without_matplotlib_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = importlib.import_module("tbsched.views.pictures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pictures need matplotlib: pip install matplotlib"):
        importlib.reload(module)
