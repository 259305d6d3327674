"""When the kernels of a profile ran, beside a prediction, and the gaps between them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np
from markupsafe import Markup

from tbsched.advice.explain.explanation import Explanation, Gap
from tbsched.program.program import Program
from tbsched.show.html.parts import folded_html, keys_html, legend_html
from tbsched.show.html.svg.timeline import Frame, Names, timeline_html
from tbsched.show.layout.colours import TRANSFER_COLOUR, colours_of
from tbsched.show.layout.lanes import Spans, spans_by_stream, spans_measured, spans_of
from tbsched.show.layout.names import span_name
from tbsched.show.text.explanations import cause_word, gap_words

_DRAWN = 400  # gaps, the most costly ones
_NAME = 40
_STREAMS = (420, 30, 13)  # pixels: of all rows, and of one at most and at least
_GAPS = {"idle": "GPU idle", "copies": "copies alone", "stream": "stream idle", "order": "SMs idle"}
# Of causes, those that cost most first; the others are grey. Kernels have other colours.
_CAUSES = ("#c8322b", "#7b3fa0", "#8a6d3b", "#3f6f73", "#d98ba0", "#5a5f2a")


def measured_html(program: Program) -> list[Markup]:
    """When the profile says that each launch ran, by stream."""
    spans = _timeline(spans_measured(program), _names(program), "as measured")
    return [legend_html(program.sequence.launches), spans]


def explained_html(found: Explanation) -> list[Markup]:
    """The profile and the prediction on one scale, and the gaps of the profile by their causes."""
    assert found.prediction is not None  # which is drawn
    measured, predicted = spans_measured(found.program), spans_by_stream(found.prediction)
    length = max(measured.length_ns, predicted.length_ns)
    measured, predicted = (
        dataclasses.replace(spans, length_ns=length) for spans in (measured, predicted)
    )
    names = _names(found.program)
    parts = [
        legend_html(found.program.sequence.launches),
        folded_html("As measured", _timeline(measured, names, "as measured"), is_open=True),
    ]
    if found.gaps:
        colours = _colours_of_causes(found.gaps)
        drawn = found.gaps[:_DRAWN]
        spans = _gap_spans(drawn, measured)
        of_gaps = Names(
            [colours[_main(gap)] for gap in drawn],
            lambda number: cause_word(_main(drawn[number])),
            lambda number: gap_words(found, drawn[number]),
        )
        keys = ((colour, cause_word(cause)) for cause, colour in colours.items())
        parts.append(
            folded_html(
                "Gaps, by what most of each is for",
                keys_html(keys),
                _timeline(spans, of_gaps, "gaps as measured"),
                is_open=True,
            )
        )
    drawn_too = _timeline(predicted, names, "as predicted")
    return [*parts, folded_html("As predicted", drawn_too, is_open=True)]


def _timeline(spans: Spans, names: Names, heading: str) -> Markup:
    return timeline_html(Frame(spans, *_STREAMS), names, heading)


def _names(program: Program) -> Names:
    sequence = program.sequence
    colours = colours_of(sequence.launches) + [TRANSFER_COLOUR] * len(sequence.transfers)

    @functools.cache
    def short(number: int) -> str:
        return span_name(sequence, number, _NAME)

    return Names(colours, short, short)


def _main(gap: Gap) -> str:
    return gap.causes[0].cause if gap.causes else gap.kind


def _colours_of_causes(gaps: Iterable[Gap]) -> dict[str, str]:
    """A colour per cause, those that cost most first."""
    costs: dict[str, float] = {}
    for gap in gaps:
        costs[_main(gap)] = costs.get(_main(gap), 0.0) + gap.cost
    ordered = sorted(costs, key=lambda cause: -costs[cause])
    return {
        cause: _CAUSES[place] if place < len(_CAUSES) else TRANSFER_COLOUR
        for place, cause in enumerate(ordered)
    }


def _gap_spans(gaps: tuple[Gap, ...], like: Spans) -> Spans:
    """A row per kind of gap, on the time axis of other spans."""
    kinds = [kind for kind in _GAPS if any(gap.kind == kind for gap in gaps)]
    spans = spans_of(
        tuple(_GAPS[kind] for kind in kinds),
        np.array([kinds.index(gap.kind) for gap in gaps], np.int64),
        np.arange(len(gaps)),
        np.array([round(gap.begin * 1e9) for gap in gaps], np.int64),
        np.array([round(gap.end * 1e9) for gap in gaps], np.int64),
        "gaps",
    )
    return dataclasses.replace(spans, zero_ns=like.zero_ns, length_ns=like.length_ns)
