"""Processes of this host that run units, one per GPU; those that die are replaced."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, Literal, ParamSpec, TypeVar

from tbsched.errors import shown
from tbsched.launcher.query import gpus

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
MAX_WORKERS = 1024  # with a thread and three files each in the process that has them
GRACE = 10.0  # seconds from an interruption until whoever goes on is killed
_LOOK = 0.5  # seconds
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class WorkerDied(BrokenExecutor):
    """The process that ran a piece of work is gone; the ``Workers`` go on without it."""


class Workers(Executor):
    """Processes on this host, as a ``concurrent.futures.Executor``.

    A process that dies fails what it ran with a ``BrokenExecutor`` and is replaced. So a campaign
    goes on, which it could not with a ``ProcessPoolExecutor``. Processes start with the first work,
    by ``spawn``: a script that makes ``Workers`` needs ``if __name__ == "__main__":``. They end
    with the process that started them, however that ends.

    Args:
        count: how many processes, 1 to 1024.

    Raises:
        TypeError, ValueError: no such number.

    Example:
        >>> from tbsched.campaigns import Workers
        >>> with Workers(2) as workers:  # doctest: +SKIP
        ...     report = tb.fuzz(("h200", "round_robin"), "h200", seed=1, executor=workers)
        >>> with Workers.on_gpus("all") as workers:  # doctest: +SKIP
        ...     report = tb.fuzz("gpu", "h200", executor=workers)
    """

    def __init__(self, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"workers: an integer is needed, got {shown(count)}")
        if not 1 <= count <= MAX_WORKERS:
            raise ValueError(f"workers: {count} is outside 1..{MAX_WORKERS}")
        self._start([{} for _ in range(count)])

    @classmethod
    def on_gpus(cls, which: Literal["all"] | Iterable[int] = "all") -> Workers:
        """Returns a process for each GPU, which sees no other one.

        Args:
            which: their numbers, as CUDA counts them in this process.

        Raises:
            TypeError, ValueError: no numbers, or one twice.
            NoGpuError: no usable GPU, or none of a number; the message says what was looked for.

        Example:
            >>> from tbsched.campaigns import Workers
            >>> workers = Workers.on_gpus([0, 1])  # doctest: +SKIP
        """
        workers = cls.__new__(cls)
        workers._start([{_VISIBLE: name} for name in _visible(which)])
        return workers

    def _start(self, environments: list[dict[str, str]]) -> None:
        """Starts a thread for each worker. It starts the worker's process when that is needed."""
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._slots = [_WorkerSlot(environment) for environment in environments]
        self._threads = [
            threading.Thread(target=slot.serve, args=(self._tasks,), daemon=True)
            for slot in self._slots
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return len(self._slots)

    def submit(
        self,
        fn: Callable[_Arguments, _Result],
        /,
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> Future[_Result]:
        """See ``concurrent.futures.Executor.submit``.

        Example:
            >>> from tbsched.campaigns import Workers
            >>> with Workers(1) as workers:  # doctest: +SKIP
            ...     workers.submit(pow, 2, 5).result()
            32
        """
        future: Future[_Result] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("these Workers are shut down")
            self._tasks.put(_Task(future, (fn, args, kwargs)))
        return future

    def interrupt(self) -> None:
        """Interrupts what is running; what goes on for ten seconds is killed.

        Example:
            >>> from tbsched.campaigns import Workers
            >>> with Workers(1) as workers:  # doctest: +SKIP
            ...     future = workers.submit(time.sleep, 3600)
            ...     workers.interrupt()
        """
        for slot in self._slots:
            slot.interrupt()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See ``concurrent.futures.Executor.shutdown``.

        Example:
            >>> from tbsched.campaigns import Workers
            >>> workers = Workers(1)
            >>> workers.shutdown()
        """
        with self._lock:
            if cancel_futures:
                with contextlib.suppress(queue.Empty):
                    while task := self._tasks.get_nowait():
                        task.future.cancel()
            if not self._closed or cancel_futures:
                for _ in self._threads:
                    self._tasks.put(None)
            self._closed = True
        if wait:
            for thread in self._threads:
                thread.join()


@dataclass(frozen=True, slots=True)
class _Task:
    future: Future[Any]
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class _WorkerSlot:
    """One process after the other, with the same environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._process: _Process | None = None
        self._interrupted = False

    def serve(self, tasks: queue.SimpleQueue[_Task | None]) -> None:
        """Runs the calls of the queue, one after the other, until it takes a None from it."""
        while (task := tasks.get()) is not None:
            if not task.future.set_running_or_notify_cancel():
                continue
            self._interrupted = False
            try:
                result = self._answer(ForkingPickler.dumps(task.call))
            except BaseException as error:
                task.future.set_exception(error)
            else:
                task.future.set_result(result)
        if self._process is not None:
            self._process.close()

    def interrupt(self) -> None:
        """Interrupts the call that runs, and each that follows."""
        self._interrupted = True
        process = self._process
        if process is not None:
            process.interrupt()

    def _answer(self, call: Any) -> Any:
        """Runs a pickled call; returns its result or its error, pickled."""
        if self._process is not None and self._process.is_dead():  # while it had nothing to do
            self._process.close()
            self._process = None
        if self._process is None:
            self._process = _Process(self._environment)
            if self._interrupted:
                raise KeyboardInterrupt
        try:
            data = self._process.answer(call)
        except WorkerDied:
            self._process = None
            raise
        succeeded, result = pickle.loads(data)
        if not succeeded:
            raise result
        return result


class _Process:
    """A process, and the pipe to it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, child_pipe = context.Pipe()
        self._process = context.Process(
            target=_work, args=(child_pipe, dict(environment)), daemon=True
        )
        self._process.start()
        child_pipe.close()
        self._interrupted: float | None = None
        self._busy = False
        try:
            self._received()
        except WorkerDied as died:
            raise RuntimeError(
                f"a worker could not start: {died}; a script that makes Workers needs "
                'if __name__ == "__main__":'
            ) from None

    def answer(self, call: Any) -> bytes:
        """Runs a pickled call in the process, and returns its answer.

        Raises:
            WorkerDied: the process gave no answer.
        """
        self._interrupted, self._busy = None, True
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._pipe.send_bytes(call)
            return self._received()
        finally:
            self._busy = False

    def interrupt(self) -> None:
        if self._busy and self._process.is_alive():
            self._interrupted = time.monotonic()
            os.kill(self._process.pid or 0, signal.SIGINT)

    def is_dead(self) -> bool:
        return not self._process.is_alive()

    def close(self) -> None:
        """Ends the process."""
        self._pipe.close()
        self._process.join(GRACE)
        self._process.kill()
        self._process.join()

    def _received(self) -> bytes:
        """Returns the answer of the worker; kills it ten seconds after an interrupt."""
        while not (ready := wait([self._pipe, self._process.sentinel], _LOOK)):
            if self._interrupted is not None and time.monotonic() > self._interrupted + GRACE:
                self._process.kill()
        if self._pipe in ready:
            with contextlib.suppress(EOFError, ConnectionResetError):
                return self._pipe.recv_bytes()
        self._pipe.close()
        self._process.join()
        code = self._process.exitcode or 0
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        raise WorkerDied(f"its process ended {how}")


def _work(pipe: Connection, environment: dict[str, str]) -> None:
    """Answers calls until the pipe is closed. Ctrl-C at the terminal is for the parent alone."""
    os.setpgid(0, 0)
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    pipe.send_bytes(b"ready")
    with contextlib.suppress(EOFError):
        while True:
            call = pipe.recv_bytes()
            interrupted.clear()
            pipe.send_bytes(_answer(call, interrupted))


def _answer(call: bytes, interrupted: threading.Event) -> Any:
    """Runs a pickled call; returns (True, its result) or (False, its error), pickled.

    Raises KeyboardInterrupt in the call if ``interrupted`` is set before it begins.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        function, arguments, keywords = pickle.loads(call)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if interrupted.is_set():
                raise KeyboardInterrupt
            result = function(*arguments, **keywords)
        finally:
            signal.signal(signal.SIGINT, handler)
        return ForkingPickler.dumps((True, result))
    except BaseException as error:
        error.add_note("In a worker: " + "".join(traceback.format_exception(error)))
        try:
            answer = ForkingPickler.dumps((False, error))
            pickle.loads(answer)
            return answer
        except Exception:
            return ForkingPickler.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def _end_with_parent() -> None:
    """Waits until the parent process has ended, and ends this one."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _visible(which: Literal["all"] | Iterable[int]) -> list[str]:
    """Returns the CUDA_VISIBLE_DEVICES under which each GPU is the only one."""
    if which == "all":
        which = range(gpus())
    gpu_numbers = [*which] if isinstance(which, Iterable) and not isinstance(which, str) else []
    if not gpu_numbers or not all(type(gpu) is int for gpu in gpu_numbers):
        raise TypeError(f"gpus: 'all' or numbers of GPUs are needed, got {shown(which)}")
    if len(set(gpu_numbers)) < len(gpu_numbers) or min(gpu_numbers) < 0:
        raise ValueError(f"gpus: {shown(which)} are not different numbers from 0 on")
    names = os.environ.get(_VISIBLE)
    known = [str(gpu) for gpu in range(gpus())] if names is None else names.split(",")
    known = [name for name in known if name.strip()]
    for gpu in gpu_numbers:
        if gpu >= len(known):
            raise ValueError(f"gpus: there is no GPU {gpu}, only {len(known)}")
    return [known[gpu] for gpu in gpu_numbers]
