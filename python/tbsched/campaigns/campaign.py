"""Campaigns: sequences are drawn, predicted, observed and compared; what disagrees is shrunk."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from tbsched.campaigns.options import CampaignOptions, Path_, check_count
from tbsched.campaigns.oracles import Device, OracleLike
from tbsched.campaigns.results import Report
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.errors import missing
from tbsched.hardware.initial_state import InitialState
from tbsched.program.sequence import Sequence

if TYPE_CHECKING:
    from hypothesis import strategies as st

__all__ = ["fuzz", "record"]


def fuzz(
    oracle: OracleLike = "gpu",
    predictor: Device = "h200",
    policy: str | None = None,
    *,
    max_examples: int = 10_000,
    max_seconds: float | None = None,
    max_counterexamples: int | None = 1,
    level: str = "occupancy",
    seed: int | None = None,
    begin: int = 0,
    corpus: Path_ | None = None,
    record: Path_ | None = None,
    options: SequenceOptions | None = None,
    without: Collection[str] = (),
    strategy: st.SearchStrategy[Sequence] | None = None,
    limits: Device | None = None,
    initial_state: InitialState | None = None,
    steer: bool = False,
    past_refusal: bool | None = None,
    until_full: bool = False,
    target_fullness: bool = False,
    shrink_seconds: float = 30.0,
    draw: str = "auto",
    executor: Executor | None = None,
    progress: bool = True,
) -> Report:
    """Searches for sequences on which a prediction and an oracle disagree, and shrinks them.

    Args:
        oracle: ``"gpu"``; a device whose model plays the GPU, also with a policy
            (``"rtx3090/algorithm1"``, or a tuple of both); or anything with ``observe(seq)``, such
            as a :class:`RecordedOracle` or an open ``Gpu``.
        predictor, policy: what is tested, as for :func:`tbsched.predict`.
        max_examples: sequences drawn at most.
        max_seconds: no sequence is drawn after so long. A disagreement that was found before is
            still shrunk.
        max_counterexamples: the campaign ends after so many. None sets no limit.
        level: ``occupancy`` (blocks per SM) or ``exact`` (the SM of each block, from the initial
            state that explains the observation best).
        seed: the same seed and the same other arguments repeat a campaign; None draws a seed.
        begin: the number of the first sequence that is drawn. With ``draw="native"`` the seed and
            this number decide what is drawn, so one campaign can follow another.
        corpus: a ``.jsonl`` trace file. Counterexamples are appended to it at once. The campaign
            begins with those that it holds already.
        record: a ``.jsonl`` trace file that every observation is appended to.
        options: what sequences are drawn from; None is all that the device has
            (:meth:`SequenceOptions.everything`), with clusters only where the models place them.
        without: fields of :class:`SequenceOptions` that are not drawn from where ``options`` is
            None, such as ``["partitions"]`` for a driver without green contexts. Not together with
            recorded traces.
        strategy: a Hypothesis strategy that draws the sequences instead. ``options`` then only says
            what numbers shrink to.
        limits: the device within whose limits sequences are drawn. By default it is the oracle's if
            that is a model, else the predictor; of an ablation it is the device without it. A
            cooperative launch has no more blocks than the predictor and such an oracle hold.
        initial_state: the only latent state that the predictor starts from. By default a sequence
            agrees if the prediction from any latent state does.
        steer: brings the oracle to that state (None: the first one) before every sequence, as
            :class:`tbsched.Steered` does. Predictions then start from this state only. Three short
            sequences more run for each one.
        past_refusal: what happens to the events after the first launch that is predicted not to
            fit. False drops them, True keeps them. None drops them too, but in one sequence of 64
            keeps the launches up to the next release on SMs that a launch waits for. On a GPU every
            launch that waits costs milliseconds, and what follows that release differs from run to
            run.
        until_full: draws launches until the next does not fit, and releases none, as the ICCD 2023
            paper does (:meth:`SequenceOptions.until_full`).
        target_fullness: lets Hypothesis prefer sequences that fill the GPU more.
        shrink_seconds: how long a counterexample is shrunk at most.
        draw: ``native`` draws with NumPy, predicts and compares while the GPU runs other sequences,
            and hands what disagrees to Hypothesis, which shrinks it. ``hypothesis`` draws one by
            one, which is slower but tries variations of what it drew before. ``auto`` is ``native``
            for a GPU and a model. It is ``hypothesis`` for any other oracle, for a ``strategy`` and
            for ``target_fullness``.
        executor: who runs the campaign, in units of some hundred or thousand sequences: a
            :class:`~tbsched.campaigns.Workers`, Dask's ``Client.get_executor()``, or any other
            ``concurrent.futures.Executor``. Oracle, predictor and strategy must be ones that
            ``pickle`` can take there; ``"gpu"`` is the first GPU that a worker sees. None: this
            process runs it. The counterexamples do not depend on the number of workers, if the
            oracle repeats itself and shrinking does not take ``shrink_seconds``.
        progress: shows a bar, the seed and counterexamples on standard error.

    Returns:
        A :class:`Report`. Ctrl-C ends the campaign with the report so far.

    Raises:
        TypeError, ValueError: bad arguments, or a sequence that the oracle refuses.
        ImportError: Hypothesis is not installed.
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.

    Example:
        >>> report = tb.fuzz(("h200", "round_robin"), "h200", seed=1, progress=False)
        >>> len(report.counterexamples), report.ended
        (1, 'counterexamples')
    """
    return _run(
        CampaignOptions(
            oracle=oracle,
            predictor=predictor,
            policy=policy,
            limits=limits,
            max_examples=max_examples,
            max_seconds=max_seconds,
            max_counterexamples=max_counterexamples,
            level=level,
            seed=_drawn(seed),
            begin=begin,
            corpus=corpus,
            record=record,
            options=options,
            without=without,
            strategy=strategy,
            initial_state=initial_state,
            steer=steer,
            past_refusal=past_refusal,
            until_full=until_full,
            target_fullness=target_fullness,
            shrink_seconds=shrink_seconds,
            draw=draw,
            executor=executor,
            progress=progress,
        )
    )


def record(
    oracle: OracleLike,
    path: Path_,
    count: int,
    *,
    predictor: Device = "h200",
    policy: str | None = None,
    level: str = "exact",
    seed: int | None = None,
    begin: int = 0,
    options: SequenceOptions | None = None,
    without: Collection[str] = (),
    strategy: st.SearchStrategy[Sequence] | None = None,
    limits: Device | None = None,
    initial_state: InitialState | None = None,
    steer: bool = False,
    past_refusal: bool | None = None,
    until_full: bool = False,
    repeats: int = 1,
    draw: str = "auto",
    executor: Executor | None = None,
    progress: bool = True,
) -> Report:
    """Records random sequences, and reports how many a predictor places right. Nothing is shrunk.

    Args:
        oracle: as for :func:`fuzz`.
        path: a ``.jsonl`` trace file; it grows while the recording runs.
        count: how many sequences are drawn.
        predictor, policy: what is compared. A sequence ends where the prediction says that the GPU
            is full.
        repeats: observes each sequence so many times. Where the numbers of blocks per SM differ,
            the trace is marked ``unstable``.
        level, seed, begin, options, without, strategy: as for :func:`fuzz`.
        limits, initial_state, steer, past_refusal, until_full, draw: as for :func:`fuzz`.
        executor, progress: as for :func:`fuzz`.

    Returns:
        A :class:`Report` without counterexamples.

    Raises:
        TypeError, ValueError: bad arguments, or a sequence that the oracle refuses.
        ImportError: Hypothesis is not installed.
        NoGpuError: no usable GPU; the message says what was looked for.
        CudaError: the driver refused a call.

    Example:
        >>> from tbsched.campaigns import record
        >>> report = record("rtx3090", "recorded.jsonl", 5, predictor="rtx3090", progress=False)
        >>> report.examples, len(tb.load_traces("recorded.jsonl"))
        (5, 5)
    """
    return _run(
        CampaignOptions(
            oracle=oracle,
            predictor=predictor,
            policy=policy,
            limits=limits,
            max_examples=check_count("count", count, 1),
            max_counterexamples=0,
            level=level,
            seed=_drawn(seed),
            begin=begin,
            record=path,
            options=options,
            without=without,
            strategy=strategy,
            initial_state=initial_state,
            steer=steer,
            past_refusal=past_refusal,
            until_full=until_full,
            repeats=repeats,
            draw=draw,
            executor=executor,
            progress=progress,
        )
    )


def _drawn(seed: int | None) -> int:
    return secrets.randbits(32) if seed is None else seed


def _run(options: CampaignOptions) -> Report:
    """Runs a campaign in this process or over several, and returns its report."""
    try:
        import hypothesis  # noqa: F401
    except ImportError as error:
        raise missing("campaigns", "Hypothesis", "hypothesis") from error
    # Here, not above: Hypothesis is optional, and this is what needs it.
    from tbsched.campaigns import loop
    from tbsched.campaigns.scale import coordinator

    if options.executor is None:
        return loop.run(options)
    return coordinator.run(options, options.executor)
