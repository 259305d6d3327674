"""Gives the units of a campaign to an executor, again where they fail, and merges what comes back.

Units are merged in the order of their numbers. So the report and the files are the same whoever ran
which unit, and in whatever order they came back.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tbsched.campaigns.findings import add_counterexample
from tbsched.campaigns.loop import Outputs, outputs
from tbsched.campaigns.options import CampaignOptions
from tbsched.campaigns.results import SO_FAR, Lost, Report
from tbsched.campaigns.scale.units import GPU_ERRORS, Done, Unit, run_unit, units
from tbsched.campaigns.scale.workers import GRACE, Workers
from tbsched.campaigns.space.coverage import Coverage
from tbsched.campaigns.tally import Tally
from tbsched.comparison.compare import check_level
from tbsched.hardware.catalogue import device as find_device
from tbsched.traces.annotations import Origin

TRIES = 3  # runs of a unit before it is lost
# Units in flight: at first, and at most. Each unit that returns allows one more, since the number
# of workers is unknown.
FIRST_WINDOW, MAX_WINDOW = 64, 32_768
_Arrived: TypeAlias = "queue.SimpleQueue[Future[Done]]"


def run(options: CampaignOptions, executor: Executor) -> Report:
    """Runs a campaign to its end.

    Raises:
        whatever a unit raises, or the executor.
    """
    spec = find_device(options.predictor)
    policy = spec.policy if options.policy is None else options.policy
    origin = Origin(spec.name, policy, check_level(options.level), options.seed, shrunk=False)
    until = None if options.max_seconds is None else time.time() + options.max_seconds
    with contextlib.ExitStack() as opened:
        out = outputs(options, opened)
        merged = _Merged(options.max_counterexamples, out)
        parts = units(options, out.corpus.unresolved, until)
        work = _Work(executor, parts, until, GRACE + options.shrink_seconds, merged)
        try:
            ended = work.run()
        except Exception as error:
            report = merged.tally.report(origin, merged.coverage, "error")
            error.add_note(f"{SO_FAR}{report}")
            raise
        return merged.tally.report(origin, merged.coverage, ended)


@dataclass(frozen=True, slots=True)
class _Merged:
    """Merged results of all units, equal to those of a single process."""

    max_counterexamples: int | None  # that end the campaign; None: any number
    out: Outputs
    tally: Tally = field(default_factory=Tally)
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def has_enough(self) -> bool:
        return bool(self.max_counterexamples) and len(self.tally.counterexamples) >= (
            self.max_counterexamples or 0
        )

    def add(self, done: Done | Lost) -> None:
        """Adds the result of a unit."""
        if isinstance(done, Lost):
            self.tally.lost.append(done)
            return
        for trace in done.corpus:
            self.out.corpus.append(trace)
        for trace in done.recorded:
            assert self.out.recording is not None
            self.out.recording.append(trace)
        self.tally.add(done.tally)
        self.coverage.add(done.coverage)
        for counterexample in done.tally.counterexamples.values():
            if not self.has_enough:
                add_counterexample(counterexample, self.tally, self.out.progress)


class _Work:
    """The units that are with the executor, or back from it."""

    def __init__(
        self,
        executor: Executor,
        parts: Iterator[Unit],
        until: float | None,
        patience: float,
        merged: _Merged,
    ) -> None:
        self._executor = executor
        self._parts = enumerate(parts)
        self._until = until
        self._patience = patience  # seconds for the next answer when the time is over
        self._merged = merged
        self._late = False
        self._running: dict[Future[Done], tuple[int, Unit]] = {}
        self._arrived: _Arrived = queue.SimpleQueue()
        self._results: dict[int, Done | Lost] = {}  # results that wait for an earlier unit
        self._window = FIRST_WINDOW
        self._next = 0
        self._returned = Tally()  # sum of all returned units, for the bar

    def run(self) -> str:
        """Runs the campaign to its end; returns why it ended.

        Raises:
            whatever a unit raises, or the executor; what came back before is merged.
        """
        try:
            return self._run()
        except KeyboardInterrupt:
            self._stop(GRACE)
            return "interrupted"
        except BaseException:
            self._stop(0.0)
            raise
        finally:
            self._cancel()

    def _run(self) -> str:
        """Submits all units and takes their results; returns why the campaign ended."""
        self._fill()
        while self._running:
            try:
                self._take(self._arrived.get(timeout=self._seconds_left()))
            except queue.Empty:
                self._give_up()
                return "seconds"
            ended = self._merge()
            if ended is not None:
                return ended
            self._fill()
        return "seconds" if self._late else "examples"

    def _seconds_left(self) -> float | None:
        """Returns for how many seconds to wait for the next result; None: for ever."""
        if self._until is None:
            return None
        return max(0.0, self._until - time.time()) + self._patience

    def _give_up(self) -> None:
        """Merges the results that are there; the units that were begun and have none count as
        lost.
        """
        for future, (index, unit) in [*self._running.items()]:
            if not future.cancel():
                options = unit.options
                reason = f"no answer within {self._patience:g} s after the end of the time"
                self._results[index] = Lost(options.begin, options.max_examples, reason)
        self._merge_back()

    def _fill(self) -> None:
        """Submits units until enough of them run, or the time is over."""
        while len(self._running) < self._window and not self._late:
            part = next(self._parts, None)
            if part is None:
                return
            self._late = self._until is not None and time.time() > self._until
            if not self._late:
                self._submit(*part)

    def _submit(self, index: int, unit: Unit) -> None:
        """Submits a unit to the executor. ``index``: its place among all units."""
        try:
            future = self._executor.submit(run_unit, unit)
        except BrokenExecutor as error:
            error.add_note("this executor takes no more work; tbsched.campaigns.Workers would")
            raise
        self._running[future] = index, unit
        future.add_done_callback(self._arrived.put)

    def _take(self, future: Future[Done]) -> None:
        """Takes the result of a unit that has ended; submits the unit again if its worker was
        lost.
        """
        index, unit = self._running.pop(future)
        done: Done | None = None
        try:
            done = future.result()
            error: BaseException | None = done.error
        except (Exception, CancelledError) as failure:
            error = failure
        if done is not None and error is None and done.ended != "another process":
            self._settle(index, done)
        elif _is_of_chance(error) and unit.tries + 1 < TRIES:
            self._submit(index, replace(unit, tries=unit.tries + 1))
        elif _is_death(error):
            options = unit.options
            reason = f"{TRIES} times its worker died; the last time {error}"
            self._settle(index, Lost(options.begin, options.max_examples, reason))
        else:
            if done is not None:
                self._settle(index, done)
            if error is not None:
                raise error

    def _settle(self, index: int, done: Done | Lost) -> None:
        """Notes the final result of a unit. It is merged when all units before it are."""
        self._results[index] = done
        self._window = min(self._window + 1, MAX_WINDOW)
        if isinstance(done, Done):
            self._returned.add(done.tally)
            self._merged.out.progress.update(self._returned, "fuzz")

    def _merge(self) -> str | None:
        """Merges the results that are next in the order of units. Returns why the campaign ends;
        None: it goes on."""
        while (result := self._results.pop(self._next, None)) is not None:
            self._next += 1
            self._merged.add(result)
            if self._merged.has_enough:
                return "counterexamples"
            if isinstance(result, Done):
                if result.ended in ("exhausted", "another process"):
                    return result.ended
                self._late |= result.ended == "seconds"
        return None

    def _stop(self, seconds: float) -> None:
        """Interrupts running units, and merges all results that arrive within ``seconds``."""
        self._cancel()
        until = time.monotonic() + (seconds if isinstance(self._executor, Workers) else 0.0)
        with contextlib.suppress(KeyboardInterrupt, queue.Empty):
            while self._running:
                future = self._arrived.get(timeout=max(0.0, until - time.monotonic()))
                index, _ = self._running.pop(future)
                with contextlib.suppress(BaseException):
                    self._results[index] = future.result(timeout=0)
        self._merge_back()

    def _merge_back(self) -> None:
        for index in sorted(self._results):
            self._merged.add(self._results.pop(index))

    def _cancel(self) -> None:
        """Cancels the units that have not begun; interrupts the others if these are our Workers."""
        for future in [*self._running]:
            future.cancel()
        if self._running and isinstance(self._executor, Workers):
            self._executor.interrupt()


def _is_death(error: BaseException | None) -> bool:
    return isinstance(error, BrokenExecutor) or _is_killed(error)


def _is_of_chance(error: BaseException | None) -> bool:
    """Returns whether another try may succeed; an error of None is another process on the GPU."""
    return error is None or isinstance(error, (BrokenExecutor, *GPU_ERRORS))


def _is_killed(error: BaseException | None) -> bool:
    """Returns whether Dask gave up a task whose workers kept dying."""
    dask = sys.modules.get("distributed")
    return dask is not None and isinstance(error, dask.KilledWorker)
