"""When blocks and launches ran: rows of spans over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from markupsafe import Markup

from tbsched.counting import counted
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.views.cards import note_html
from tbsched.views.layout.lanes import Spans
from tbsched.views.layout.names import LONGEST, cut
from tbsched.views.svg.markup import block, drawing, element, lines, titled
from tbsched.views.svg.shapes import boxes, coordinate, fits, is_bright, time_marks, whole_boxes
from tbsched.views.words import more_of

WIDTH = 916
_MARGIN, _RIGHT, _AXIS = 96, 14, 22
_APART = 600  # groups that have an outline and a text each
_CUT = 2_500  # largest number of spans with a line between two
_TALL = 30  # and lanes are at least as tall, in tenths of a pixel
_THIN = 40  # tenths of a pixel; narrower boxes have no line between them
_LABELS = 400
_LETTERS = 7  # of a name that says something
_NARROW = 9  # a lane of fewer pixels has no text


@dataclass(frozen=True, slots=True)
class Names:
    """How launches are called in a timeline.

    Attributes:
        colours: a colour per launch.
        label: a short name of a launch.
        title: what is shown of a launch when the mouse is over it.
    """

    colours: Sequence[str]
    label: Callable[[int], str]
    title: Callable[[int], str]


@dataclass(slots=True)
class _Group:
    colour: str
    title: str
    path: str
    thin: str = ""
    wait: str = ""

    def drawn(self) -> Markup:
        """Returns the SVG of spans of one colour: those that ran, the thin ones and the waits, with
        the title as a tooltip."""
        waits = element("path", class_="wait", d=self.wait) if self.wait else ""
        thin = element("path", class_="thin", d=self.thin) if self.thin else ""
        ran = element("path", d=self.path) if self.path or not self.thin else ""
        return titled(self.title, ran, thin, waits, class_="span", fill=self.colour)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Spans of waits, drawn below those of what ran.

    Attributes:
        row, launch: int64 (waits,).
        begin_ns, end_ns: int64 (waits,).
    """

    row: Int64Array
    launch: Int64Array
    begin_ns: Int64Array
    end_ns: Int64Array


@dataclass(frozen=True, slots=True)
class Frame:
    """Where rows and times are, in tenths of a pixel.

    Attributes:
        spans: what is drawn.
        tall: of all rows, in pixels.
        most, least: of one row, in pixels.
    """

    spans: Spans
    tall: int
    most: int
    least: int
    pitch: float = field(init=False)

    def __post_init__(self) -> None:
        rows = max(len(self.spans.titles), 1)
        pitch = min(self.most, max(self.least, self.tall / rows))
        object.__setattr__(self, "pitch", pitch if pitch > 8 else round(pitch * 2) / 2)

    @property
    def height(self) -> float:
        return self.pitch * len(self.spans.titles)

    @property
    def pixel_ns(self) -> float:
        """The time that a pixel is."""
        return self.spans.length_ns / (WIDTH - _MARGIN - _RIGHT)

    def x(self, times: Int64Array | Float64Array) -> Float64Array:
        """Tenths of a pixel from the left."""
        scale = 10 * (WIDTH - _MARGIN - _RIGHT) / self.spans.length_ns
        return np.asarray(10 * _MARGIN + (times - self.spans.zero_ns) * scale, np.float64)


def without_idle(spans: Spans) -> tuple[Spans, list[str]]:
    """Returns the spans without rows in which nothing ran, if these are most; and a note that says
    so."""
    busy = np.unique(spans.row)
    if 2 * len(busy) > len(spans.titles) or not len(busy):
        return spans, []
    shown = replace(
        spans,
        titles=tuple([spans.titles[row] for row in busy.tolist()]),
        lanes=spans.lanes[busy],
        row=np.searchsorted(busy, spans.row),
    )
    return shown, [f"{len(spans.titles) - len(busy):,} rows in which nothing ran are left out."]


def timeline_html(
    frame: Frame,
    names: Names,
    heading: str,
    waiting: Waiting | None = None,
    notes: Sequence[str] = (),
) -> Markup:
    """Returns HTML: rows of spans.

    Args:
        frame: spans and their sizes.
        names: of the launches.
        heading: for who cannot see it.
        waiting: waits of launches, below their spans.
        notes: below the picture.
    """
    spans = frame.spans
    gap = 1.6 if frame.pitch >= 10 else 0.0
    share = 0.74 if waiting is not None else 1.0
    height = 10 * (frame.pitch - gap) * share
    top = 10 * (frame.pitch * spans.row + gap / 2) + spans.lane * height / spans.lanes[spans.row]
    lane = np.maximum(height / spans.lanes[spans.row], 1)
    x_left = frame.x(spans.begin_ns)
    right = frame.x(spans.drawn_until_ns(frame.pixel_ns))
    columns = [x_left, top, np.maximum(right - x_left, 2), lane]
    pixel_boxes = np.round(np.stack(columns, axis=1)).astype(np.int64)
    groups = _groups(spans.launch, pixel_boxes, names)
    if waiting is not None:
        _add_waits(groups, frame, waiting, gap, names)
    tall = round(frame.height + _AXIS)
    bands = boxes(
        (_MARGIN, row * frame.pitch, WIDTH - _MARGIN - _RIGHT, frame.pitch)
        for row in range(0, len(spans.titles), 2)
    )
    shapes = [group.drawn() for group in groups.values()]
    parts = [
        element("path", class_="band", d=bands) if frame.pitch >= 10 and bands else "",
        *_ticks(spans, tall),
        *_titles(frame),
        block("g", shapes, class_=_style(spans, lane), transform="scale(.1)"),
        *_labels(spans, pixel_boxes, names),
    ]
    return lines(drawing(WIDTH, tall, heading, parts), *map(note_html, (spans.note, *notes)))


def _style(spans: Spans, lane: Float64Array) -> str:
    """Returns the CSS class of spans: ``crisp`` if they are bins, which have no seams between them;
    ``cut`` if they are few and tall enough to have lines between them; else ``plain``."""
    if spans.note:
        return "crisp"
    return "cut" if len(spans.row) <= _CUT and lane.min(initial=_TALL) >= _TALL else "plain"


def _groups(launch: Int64Array, pixel_boxes: Int64Array, names: Names) -> dict[object, _Group]:
    """Returns the spans in groups that are drawn as one shape each: the spans of a launch, of a
    kernel if there are many launches, or of a colour if there are many kernels. The keys are of no
    interest."""
    shown = np.unique(launch).tolist()
    keys: dict[int, object] = {shown_launch: shown_launch for shown_launch in shown}
    if len(shown) > _APART:
        keys = {shown_launch: names.label(shown_launch) for shown_launch in shown}
    if len(set(keys.values())) > _APART:
        keys = {shown_launch: names.colours[shown_launch] for shown_launch in shown}
    members: dict[object, list[int]] = {}
    for shown_launch, key in keys.items():
        members.setdefault(key, []).append(shown_launch)
    group_index = {
        shown_launch: span_group
        for span_group, group_launches in enumerate(members.values())
        for shown_launch in group_launches
    }
    group_indices = np.array([group_index[shown_launch] for shown_launch in shown], np.int64)
    span_group = group_indices[np.searchsorted(shown, launch)] if shown else launch
    order = np.argsort(span_group, kind="stable")
    bounds = np.searchsorted(span_group[order], np.arange(len(members) + 1))
    rows = pixel_boxes[order].tolist()
    return {
        key: _Group(
            names.colours[group_launches[0]],
            names.title(group_launches[0])
            if len(group_launches) == 1
            else _title_of(group_launches, names),
            *_paths(rows[bounds[k] : bounds[k + 1]]),
        )
        for k, (key, group_launches) in enumerate(members.items())
    }


def _paths(rows: list[tuple[int, int, int, int]]) -> tuple[str, str]:
    """Returns two SVG paths of boxes: those that are wide enough to have lines between them, and
    the thin ones, which such lines would cover."""
    parts = ([row for row in rows if (row[2] < _THIN) == is_thin] for is_thin in (False, True))
    wide_boxes, thin = map(whole_boxes, parts)
    return wide_boxes, thin


def _title_of(group_launches: list[int], names: Names) -> str:
    """Returns the tooltip of a group of launches: how many they are, and of which kernels."""
    kernels = list(dict.fromkeys(names.label(launch) for launch in group_launches))
    shown = kernels[:5]
    more = [more_of(len(kernels), len(shown), "kernel")] if len(kernels) > len(shown) else []
    return "\n".join([f"{counted(len(group_launches), 'launch', 'launches')} of", *shown, *more])


def _add_waits(
    groups: dict[object, _Group], frame: Frame, waiting: Waiting, gap: float, names: Names
) -> None:
    """Adds the waits of launches to a picture."""
    x_left, right = frame.x(waiting.begin_ns), frame.x(waiting.end_ns)
    tall = 10 * (frame.pitch - gap) * 0.16
    top = 10 * (frame.pitch * (waiting.row + 1) - gap / 2) - tall
    columns = [x_left, top, np.maximum(right - x_left, 2), np.full(len(x_left), tall)]
    pixel_boxes = np.round(np.stack(columns, axis=1)).astype(np.int64).tolist()
    for launch, box in zip(waiting.launch.tolist(), pixel_boxes, strict=True):
        if launch not in groups:
            colour = names.colours[launch]
            groups[launch] = _Group(colour, names.title(launch), "")
        groups[launch].wait += whole_boxes([box])


def _ticks(spans: Spans, tall: int) -> list[Markup]:
    """Returns the ticks of the time axis."""
    inner = WIDTH - _MARGIN - _RIGHT
    ticks = []
    for share, words in time_marks(spans.length_ns):
        anchor = "start" if not share else "end" if share > 0.97 else "middle"
        x = coordinate(_MARGIN + share * inner)
        line = element("path", class_="grid", d=f"M{x} 0V{tall - 18}")
        ticks.append(line + element("text", words, x=x, y=tall - 4, text_anchor=anchor))
    return ticks


def _titles(frame: Frame) -> list[Markup]:
    """Returns the titles of the rows."""
    every = round(-(-13 // frame.pitch))
    return [
        element(
            "text", cut(title, 15), x=_MARGIN - 8, y=coordinate((row + 0.5) * frame.pitch + 4),
            text_anchor="end",
        )
        for row, title in enumerate(frame.spans.titles)
        if row % every == 0
    ]  # fmt: skip


def _labels(spans: Spans, pixel_boxes: Int64Array, names: Names) -> list[Markup]:
    """Returns names on the spans that have room for them."""
    labels: list[Markup] = []
    roomy = np.flatnonzero((pixel_boxes[:, 3] >= 10 * _NARROW) & (pixel_boxes[:, 2] >= 240))
    for k in roomy[:_LABELS].tolist():
        launch = int(spans.launch[k])
        x_left, top, width, height = (part / 10 for part in pixel_boxes[k].tolist())
        room = int((width - 8) / 6.2)
        name = names.label(launch)
        if room < min(_LETTERS, len(name)):
            continue
        text = cut(name, min(room, LONGEST))
        if fits(text, width - 6, 10):
            style = "on dark" if is_bright(names.colours[launch]) else "on"
            x, y = coordinate(x_left + 4), coordinate(top + height / 2 + 3.5)
            labels.append(element("text", text, class_=style, x=x, y=y))
    return labels
