"""Campaigns: sequences are drawn, predicted, observed and compared; what disagrees is shrunk."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from tbsched.campaigns.judge import Judge
from tbsched.campaigns.loop import Campaign
from tbsched.campaigns.options import SequenceOptions
from tbsched.campaigns.oracles import (
    Device,
    ManyOracle,
    ModelGpu,
    OracleLike,
    RecordedOracle,
    Repeated,
    open_oracle,
)
from tbsched.campaigns.progress import shown
from tbsched.campaigns.results import Report, model_code
from tbsched.campaigns.shrink import Floors
from tbsched.campaigns.steer import Steered
from tbsched.hardware.spec import DeviceSpec, InitialState
from tbsched.hardware.spec import device as find_device
from tbsched.program.sequence import Sequence
from tbsched.traces.growing_file import TraceFile
from tbsched.traces.oracle import Oracle

if TYPE_CHECKING:
    from hypothesis import strategies as st

__all__ = ["Report", "fuzz", "record"]

Path_ = str | os.PathLike[str]
DRAWS = ("auto", "native", "hypothesis")


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
    corpus: Path_ | None = None,
    record: Path_ | None = None,
    options: SequenceOptions | None = None,
    strategy: st.SearchStrategy[Sequence] | None = None,
    limits: Device | None = None,
    initial_state: InitialState | None = None,
    steer: bool = False,
    past_refusal: bool = False,
    target_fullness: bool = False,
    shrink_seconds: float = 30.0,
    draw: str = "auto",
    progress: bool = True,
) -> Report:
    """Searches sequences on which a prediction and an oracle disagree, and shrinks them.

    Args:
        oracle: ``"gpu"``; a device, or (device, policy), whose model plays the GPU; or anything
            with ``observe(seq)``, such as a :class:`RecordedOracle` or an open ``Gpu``.
        predictor, policy: what is tested, as for :func:`tbsched.predict`.
        max_examples: sequences drawn at most.
        max_seconds: no sequence is drawn after so long; one that was found is still shrunk.
        max_counterexamples: ends the campaign; None goes on, and shrinks whatever it finds.
        level: ``occupancy`` (blocks per SM) or ``exact`` (the SM of each block, from whichever
            initial state explains the observation best).
        seed: repeats a campaign with the same other arguments; None draws one.
        corpus: a ``.jsonl`` trace file that counterexamples are appended to at once, and that the
            campaign begins with: what it holds is tried again first.
        record: a ``.jsonl`` trace file that every observation is appended to.
        options: what sequences are drawn from.
        strategy: draws the sequences instead; ``options`` only says what numbers shrink to.
        limits: the device that drawn sequences must fit; by default the oracle's if it is a
            model, else the predictor. Give it where the predictor would let pass what the GPU
            refuses, as some ablations do.
        initial_state: the only latent state that the predictor starts from.
        steer: bring the oracle to that state before every sequence, None being the first one, by
            the predictor's model (:class:`tbsched.Steered`): level ``exact`` then scores with one
            state only. Three short sequences more for each that is observed.
        past_refusal: keep what follows a launch that is predicted not to fit. On a GPU each such
            launch costs milliseconds.
        target_fullness: let Hypothesis climb towards fuller GPUs.
        shrink_seconds: after so long a counterexample is taken as it is.
        draw: ``native`` draws with NumPy, predicts and compares while the GPU runs other sequences,
            and hands what disagrees to Hypothesis, which shrinks it; ``hypothesis`` draws one by
            one, which is slower but tries variations of what it drew before; ``auto`` is native
            for a GPU, and Hypothesis where native cannot: for a model, a strategy, recorded traces
            or ``target_fullness``.
        progress: show a bar, the seed and counterexamples on standard error.

    Returns:
        A :class:`Report`; Ctrl-C ends the campaign with the report so far.

    Raises:
        TypeError, ValueError: bad arguments, or a sequence that the oracle refuses.
        ImportError: Hypothesis is not installed.
        NoGpuError, CudaError: as the GPU.
    """
    return _run(
        oracle,
        predictor,
        policy,
        limits=limits,
        examples=max_examples,
        max_seconds=max_seconds,
        max_counterexamples=max_counterexamples,
        level=level,
        seed=seed,
        corpus=corpus,
        record=record,
        options=options,
        strategy=strategy,
        initial_state=initial_state,
        steer=steer,
        past_refusal=past_refusal,
        target_fullness=target_fullness,
        shrink_seconds=shrink_seconds,
        draw=draw,
        progress=progress,
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
    options: SequenceOptions | None = None,
    strategy: st.SearchStrategy[Sequence] | None = None,
    limits: Device | None = None,
    initial_state: InitialState | None = None,
    steer: bool = False,
    past_refusal: bool = False,
    repeats: int = 1,
    draw: str = "auto",
    progress: bool = True,
) -> Report:
    """Records random sequences, and says how far a prediction agrees; nothing is shrunk.

    Args:
        oracle: as for :func:`fuzz`.
        path: a ``.jsonl`` trace file; it grows while the recording runs.
        count: how many sequences are drawn.
        predictor, policy: what is compared, and ends sequences where it says that the GPU is full.
        repeats: observes each sequence so many times; where the numbers of blocks per SM differ,
            the trace is marked ``unstable``.
        level, seed, options, strategy, limits, initial_state, steer, past_refusal, draw, progress:
            as for :func:`fuzz`.

    Returns:
        A :class:`Report` without counterexamples.

    Raises:
        as :func:`fuzz`.
    """
    return _run(
        oracle,
        predictor,
        policy,
        limits=limits,
        examples=count,
        max_counterexamples=0,
        level=level,
        seed=seed,
        record=path,
        options=options,
        strategy=strategy,
        initial_state=initial_state,
        steer=steer,
        past_refusal=past_refusal,
        repeats=repeats,
        draw=draw,
        progress=progress,
    )


def _run(
    oracle: OracleLike,
    predictor: Device,
    policy: str | None,
    *,
    limits: Device | None,
    examples: int,
    level: str,
    seed: int | None,
    record: Path_ | None,
    options: SequenceOptions | None,
    strategy: st.SearchStrategy[Sequence] | None,
    initial_state: InitialState | None,
    steer: bool,
    past_refusal: bool,
    draw: str,
    progress: bool,
    max_counterexamples: int | None,
    max_seconds: float | None = None,
    corpus: Path_ | None = None,
    target_fullness: bool = False,
    shrink_seconds: float = 0.0,
    repeats: int = 1,
) -> Report:
    _require_hypothesis()
    _check_count("max_examples", examples, 1)
    if max_counterexamples is not None:
        _check_count("max_counterexamples", max_counterexamples, 0)
    seed = secrets.randbits(32) if seed is None else seed
    _check_count("seed", seed, 0)
    if max_seconds is not None:
        _check_seconds("max_seconds", max_seconds)
    _check_seconds("shrink_seconds", shrink_seconds)
    if options is None:
        options = SequenceOptions()
    elif not isinstance(options, SequenceOptions):
        raise TypeError(f"options: a SequenceOptions is needed, got {options!r}")
    spec = find_device(predictor)
    with contextlib.ExitStack() as opened:
        source = opened.enter_context(open_oracle(oracle))
        strategy_of = None
        drawn = None
        native = _native(draw, source, strategy, target_fullness)
        if strategy is None and isinstance(source, RecordedOracle):
            strategy = source.sequences(spec)
        elif strategy is None:
            from tbsched.campaigns.draws import Draws
            from tbsched.campaigns.strategies import sequences

            fitting = _limits(source, spec, limits)
            strategy = sequences(fitting, options)
            strategy_of = functools.partial(_of_length, fitting, options)
            drawn = Draws(fitting, options, seed) if native else None
        if steer:
            source = Steered(source, spec, initial_state)
            initial_state = source.initial_state
        if repeats != 1:
            source = Repeated(source, repeats)
        files = [
            None if path is None else opened.enter_context(TraceFile(path, sync_every=every))
            for path, every in ((corpus, 1), (record, 100))
        ]
        campaign = Campaign(
            # What is recorded was looked at with patience.
            judge=Judge(source, spec, policy, initial_state, level, past_refusal, record is None),
            strategy=strategy,
            draws=drawn,
            strategy_of=strategy_of,
            seed=seed,
            corpus=files[0],
            recording=files[1],
            floors=_floors(options),
            observed=_observing_code(oracle),
            max_examples=examples,
            max_seconds=max_seconds,
            max_counterexamples=max_counterexamples,
            shrink_seconds=shrink_seconds,
            target_fullness=target_fullness,
            progress=opened.enter_context(shown(progress, examples)),
        )
        return campaign.run()


def _require_hypothesis() -> None:
    try:
        import hypothesis  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "campaigns need Hypothesis: pip install tbsched[fuzz]", name="hypothesis"
        ) from error


def _check_count(name: str, value: object, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: an integer is needed, got {value!r}")
    if value < low:
        raise ValueError(f"{name}: {value} is less than {low}")


def _check_seconds(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: seconds are needed, got {value!r}")
    if not value >= 0:
        raise ValueError(f"{name}: {value} is less than 0")


def _limits(oracle: Oracle, spec: DeviceSpec, limits: Device | None) -> DeviceSpec:
    if limits is not None:
        return find_device(limits)
    return oracle.spec if isinstance(oracle, ModelGpu) else spec


def _of_length(
    limits: DeviceSpec, options: SequenceOptions, launches: int
) -> st.SearchStrategy[Sequence]:
    from tbsched.campaigns.strategies import sequences

    return sequences(limits, replace(options, min_launches=launches, max_launches=launches))


def _native(
    draw: str,
    oracle: Oracle,
    strategy: st.SearchStrategy[Sequence] | None,
    target_fullness: bool,
) -> bool:
    if draw not in DRAWS:
        raise ValueError(f"draw: {draw!r} is not one of {', '.join(DRAWS)}")
    own = {
        "a strategy": strategy is not None,
        "recorded traces": isinstance(oracle, RecordedOracle),
        "target_fullness": target_fullness,
    }
    for what, given in own.items():
        if draw == "native" and given:
            raise ValueError(f"draw: 'native' does not go with {what}; take 'hypothesis'")
    if draw == "auto":
        return isinstance(oracle, ManyOracle) and not any(own.values())
    return draw == "native"


def _floors(options: SequenceOptions) -> Floors:
    return Floors(
        registers=options.min_registers,
        carveout=options.carveouts[0],
        local_memory=min(options.local_memory),
        priority=options.priorities[0],
    )


def _observing_code(oracle: OracleLike) -> str | None:
    """The expression with which a pasted test observes ``seq``; None: it must hold the result."""
    if oracle == "gpu" or type(oracle).__name__ == "Gpu":
        return "observe(seq)"
    if isinstance(oracle, ModelGpu):
        return model_code(oracle.spec.name, oracle.policy)
    device, policy = oracle if isinstance(oracle, tuple) else (oracle, None)
    if isinstance(device, DeviceSpec):
        device = device.name
    return model_code(os.fspath(device), policy) if isinstance(device, str | os.PathLike) else None
