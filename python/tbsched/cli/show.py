"""``tbsched show``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

import tbsched.show as shows
from tbsched import storage, views
from tbsched.cli.console import show as print_out
from tbsched.cli.console import show_json
from tbsched.cli.files import (
    note_written,
    predict_program,
    profiled,
    read_traces,
    sequences_of,
)
from tbsched.cli.interrupts import ending_at_once
from tbsched.cli.options import (
    DEFAULT_DEVICE,
    AsJson,
    FromTime,
    Match,
    OnlyStream,
    Part,
    PolicyName,
    SequenceFile,
    ToTime,
    device_option,
    output_option,
)
from tbsched.comparison.compare import Diff, compare
from tbsched.comparison.verify import best_diff, verify
from tbsched.errors import did_you_mean
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import device_titled
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers.trace_files import holds_traces
from tbsched.prediction.predict import policies, predict, predict_as_recorded
from tbsched.program.program import Program
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PICTURES = (".png", ".svg", ".pdf")
# Which function of tbsched.show writes a file of each other ending, and what that file is.
_WRITERS: Mapping[str, tuple[str, str]] = {
    ".html": ("to_html", "a page"),
    ".pftrace": ("to_perfetto", "a trace for ui.perfetto.dev"),
    ".parquet": ("to_parquet", "a table"),
    ".csv": ("to_csv", "a table"),
}
_Any = TypeVar("_Any")


class View(StrEnum):
    """What a picture shows."""

    gantt = "gantt"
    measured = "measured"
    sm_map = "sm_map"
    blocks = "blocks"
    compared = "compared"
    ladder = "ladder"
    resources = "resources"


class By(StrEnum):
    """What the rows of a Gantt chart are."""

    sm = "sm"
    stream = "stream"


# Options that say how a view is drawn, and the views that take them.
_TAKEN_BY: Mapping[str, tuple[View, ...]] = {
    "by": (View.gantt,),
    "at": (View.sm_map, View.resources),
    "sm": (View.resources,),
    "against": (View.compared,),
}


def show(
    file: SequenceFile,
    output: Annotated[
        Path | None,
        output_option(
            "Its ending decides: a picture (.png, .svg, .pdf), a page (.html), a trace for "
            "ui.perfetto.dev (.pftrace) or a table (.parquet, .csv). PNG where it has no ending."
        ),
    ] = None,
    view: Annotated[
        View | None,
        typer.Option(
            "--view",
            "-v",
            help="What the picture shows. gantt: when blocks ran (the default, if launches have "
            "durations). measured: when a profile says that launches ran. blocks: how many of each "
            "launch are on each SM (the default, if not). "
            "sm_map: the GPCs, TPCs and SMs, and what sits on them. compared: prediction against "
            "recording, or against --against (the default with it). ladder: every policy scored "
            "against all recordings of the file. resources: what one SM holds.",
        ),
    ] = None,
    by: Annotated[By | None, typer.Option(help="gantt: a row per SM, or per stream.")] = None,
    at: Annotated[
        float | None,
        typer.Option(
            help="sm_map, resources: the moment. Seconds if launches have durations, by default "
            "when most blocks are resident; else after how many events, by default all.",
        ),
    ] = None,
    sm: Annotated[int | None, typer.Option(help="resources: of which SM.")] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", "-a", help="compared: a trace file of the same sequences."),
    ] = None,
    number: Annotated[
        int, typer.Option("--number", "-n", help="Which sequence of the file, from 0.")
    ] = 0,
    device: Annotated[
        str | None,
        device_option(
            "The file's sequence is predicted on it, and that is shown. Where a prediction is "
            f"needed and none is named: the recording's own, else {DEFAULT_DEVICE}."
        ),
    ] = None,
    policy: PolicyName = None,
    start: FromTime = None,
    end: ToTime = None,
    stream: OnlyStream = None,
    match: Match = None,
    as_json: AsJson = False,
) -> None:
    """Show a recorded or predicted sequence: as text, a picture, a page, a trace or a table.

    A recording is shown as it is, and so is the profile of a program, but for pictures: those are
    of its prediction, unless --view is measured. A sequence without placements is predicted first,
    and so is a recording or a profile if --device is given. Without --output, the text is printed,
    with the reasons why launches waited.

    Examples:

      tbsched show program.json -o page.html --device h200

      tbsched show recorded.jsonl -o picture.png --number 3

      tbsched show recorded.jsonl -o picture.png --view compared --device h200

      tbsched show program.json -o sm.svg --view resources --sm 5
    """
    if output is not None:
        if as_json:
            raise ValueError("--json: the document is printed; leave --output out")
        storage.check_writable(output)
    options = {"by": by, "at": at, "sm": sm, "against": against}
    request = _Request(
        file, number, device, policy, against, _view(view, output, options),
        profiled(file, Part(start, end, stream, match)),
    )  # fmt: skip
    if output is None:
        value = request.whole()
        if as_json:
            show_json(views.data(value))
        else:
            print_out(value)
        return
    is_there = storage.check_writable(output)
    kind = output.suffix.lower() or ".png"
    if kind in _WRITERS:
        writer, what = _WRITERS[kind]
        getattr(shows, writer)(request.whole(), output)
    else:
        with ending_at_once():  # imports matplotlib
            axes = request.drawn(by, at, sm)
        what = f"a picture ({kind[1:]})"
        _save(axes, output, kind)
    note_written(output, is_there, what)


def _view(chosen: View | None, output: Path | None, options: Mapping[str, object]) -> View | None:
    """Returns the view that is asked for, and refuses options that do not suit it.

    Raises:
        ValueError: naming the option.
    """
    kind = ".png" if output is None else output.suffix.lower() or ".png"
    if kind not in (*_PICTURES, *_WRITERS):
        known = (*_PICTURES, *_WRITERS)
        raise ValueError(
            f"--output: {output}: no file of this ending can be written; there are "
            f"{', '.join(known)}{did_you_mean(kind, known)}"
        )
    view = View.compared if chosen is None and options["against"] is not None else chosen
    options_given = {
        name: takers for name, takers in _TAKEN_BY.items() if options[name] is not None
    }
    for name, takers in options_given.items():
        if view not in takers and not (view is None and View.gantt in takers):
            raise ValueError(f"--{name}: it goes with --view {' or '.join(takers)}")
    if view is View.resources and options["sm"] is None:
        raise ValueError("--sm: --view resources is of one SM; give its number, from 0")
    is_drawn = output is not None and kind in _PICTURES
    if chosen not in (None, View.compared) and not is_drawn:
        raise ValueError(f"--view: {chosen} is a picture; give -o picture.png")
    return view


@dataclass(frozen=True, slots=True)
class _Request:
    """Which sequence of which file is shown, and what else is needed for it."""

    place: Path
    number: int
    device: str | None
    policy: str | None
    against: Path | None
    view: View | None
    program: Program | None

    def whole(self) -> Trace | Diff | Program:
        """Returns what tables and pages show: the profile itself, or :meth:`value`."""
        as_it_is = (self.device, self.policy, self.view) == (None, None, None)
        if self.program is not None and as_it_is:
            return self._picked([self.program], self.place)
        return self.value()

    def value(self) -> Trace | Diff:
        """Returns the trace of the file, a prediction of it, or both compared.

        Raises:
            ValueError: there is nothing to compare with, or no such number.
        """
        recorded = self._recorded()
        if self.view is View.compared and self.against is None:
            if recorded is None:
                raise ValueError(
                    f"--view: {self.place} has no placements to compare with; give --against FILE"
                )
            return compare(self._predicted(recorded), recorded)
        shown = self._shown(recorded)
        if self.against is None:
            return shown
        return compare(shown, self._picked(read_traces(self.against), self.against))

    def drawn(self, by: By | None, at: float | None, sm: int | None) -> Axes:
        """Returns the axes with the picture that is asked for."""
        if self.view is View.ladder:
            return self._ladder()
        if self.view is View.measured:
            return shows.gantt(self._profile())
        value = self.value()
        if isinstance(value, Diff):
            return shows.compared(value)
        timed = value.sequence.timed
        moment = at if at is None or timed or not at.is_integer() else int(at)
        match self.view or (View.gantt if timed or by else View.blocks):
            case View.gantt:
                return shows.gantt(value, by="stream" if by is By.stream else "sm")
            case View.sm_map:
                return shows.sm_map(value, at=moment)
            case View.resources:
                assert sm is not None
                return shows.resources(value, sm, at=moment)
        return shows.blocks(value)

    def _profile(self) -> Program:
        """Returns the profile; refuses another file, and options of predictions.

        Raises:
            ValueError: it is none, or a prediction is asked for, too.
        """
        if self.program is None:
            raise ValueError(f"--view: measured is for profiles, and {self.place} is none")
        for option, value in (("device", self.device), ("policy", self.policy)):
            if value is not None:
                raise ValueError(f"--{option}: --view measured predicts nothing; leave it out")
        return self._picked([self.program], self.place)

    def _ladder(self) -> Axes:
        """Draws how well each policy, or a named one, predicts the recordings of the file."""
        if self.program is not None:
            raise ValueError(f"--view: ladder scores recordings, and {self.place} is a profile")
        traces = read_traces(self.place)
        spec = find_device(self.device) if self.device else _recorded_on(traces[0].device)
        names = [self.policy] if self.policy else [row.name for row in policies()]
        return shows.ladder([verify(traces, spec, name) for name in names])

    def _shown(self, recorded: Trace | None) -> Trace:
        """Returns the trace to show: recorded, or predicted if an option needs that."""
        if self.program is not None:
            self._picked([self.program], self.place)
            return predict_program(self.program, self.device, self.policy)
        if recorded is None:
            sequence = self._picked(sequences_of(self.place), self.place)
            return predict(sequence, self.device or DEFAULT_DEVICE, self.policy)
        needs_prediction = self.device or self.policy or self.view is View.resources
        return self._predicted(recorded) if needs_prediction else recorded

    def _recorded(self) -> Trace | None:
        if self.program is not None or str(self.place) == "-" or not holds_traces(self.place):
            return None
        return self._picked(read_traces(self.place), self.place)

    def _predicted(self, recorded: Trace) -> Trace:
        """Returns the prediction from the recorded times, or from the state that suits best."""
        spec = find_device(self.device) if self.device else _recorded_on(recorded.device)
        if recorded.sequence.timed:
            return predict_as_recorded(recorded, spec, self.policy)
        if recorded.device.sms != spec.sms:  # another GPU says nothing of the initial state
            return predict(recorded.sequence, spec, self.policy)
        return best_diff(recorded, spec, self.policy).a

    def _picked(self, items: list[_Any], path: Path) -> _Any:
        if not 0 <= self.number < len(items):
            raise ValueError(f"--number: {self.number} is outside 0..{len(items) - 1} of {path}")
        return items[self.number]


def _recorded_on(info: DeviceInfo) -> DeviceSpec:
    """The device of a recording, if it is one of those that are known."""
    return device_titled(info.name, info.sms) or find_device(DEFAULT_DEVICE)


def _save(axes: Axes, output: Path, kind: str) -> None:
    """Writes a picture in the format of the file's ending."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    image = io.BytesIO()
    # An SVG file says when it was made and by whom, which is a change each time it is made.
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type")) if kind == ".svg" else None
    figure.savefig(image, format=kind[1:], dpi=200, metadata=metadata)
    with storage.replacing(output) as file:
        file.write(image.getvalue())
