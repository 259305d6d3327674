"""A pytest plugin: tests marked ``tbsched_gpu`` get an open GPU, or are skipped without one.

For example::

    @pytest.mark.tbsched_gpu
    def test_mine(tbsched_gpu, assert_agrees):
        assert_agrees(tb.Sequence([tb.Launch(blocks=132, threads=256, registers=32)]))

pytest loads the plugin in every project of an environment that tbsched is installed in. So its
mark, options and fixtures bear names that no other project has: a mark ``gpu`` of your own stays
yours. Nothing that takes long to load is imported until a test asks for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tbsched.errors import NoGpuError

if TYPE_CHECKING:
    from tbsched.hardware.initial_state import InitialState
    from tbsched.launcher.observe import Gpu
    from tbsched.program.sequence import Sequence

_GPU = "tbsched_gpu"  # the mark, and the fixture that comes with it


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of tests on a GPU."""
    group = parser.getgroup("tbsched")
    group.addoption(
        "--tbsched-gpu",
        type=int,
        default=0,
        metavar="INDEX",
        help="the GPU for tests marked tbsched_gpu, as CUDA counts them",
    )
    group.addoption(
        "--tbsched-gpu-required",
        action="store_true",
        help="tests marked tbsched_gpu fail, not skip, where there is no usable GPU",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "tbsched_gpu: needs a real NVIDIA GPU; skipped without one")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives tests with the mark ``tbsched_gpu`` the fixture of that name."""
    for item in items:
        names = getattr(item, "fixturenames", None)
        if names is not None and item.get_closest_marker(_GPU) and _GPU not in names:
            # Opens the GPU before the test runs, or skips it.
            names.insert(0, _GPU)


@pytest.fixture(scope="session")
def tbsched_gpu(request: pytest.FixtureRequest) -> Iterator[Gpu]:
    """The open GPU of ``--tbsched-gpu``; skips with the reason where it cannot be used."""
    from tbsched.launcher.observe import Gpu

    try:
        opened = Gpu(request.config.getoption("--tbsched-gpu"))
    except NoGpuError as error:
        if request.config.getoption("--tbsched-gpu-required"):
            pytest.fail(f"--tbsched-gpu-required: {error}", pytrace=False)
        pytest.skip(str(error))
    with opened:
        yield opened


@pytest.fixture(scope="session")
def assert_agrees(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function: asserts that a prediction and the GPU agree on a sequence, else shows where not,
    and the sequence as a test to paste.

    Its arguments are the sequence and, as for :func:`tbsched.fuzz`, ``device`` (there
    ``predictor``), ``policy``, ``level``, ``oracle``, which is ``"gpu"`` unless given, and
    ``initial_state``. It works under Hypothesis's ``@given``, too.
    """

    def check(
        seq: Sequence,
        device: Any = "h200",
        policy: str | None = None,
        level: str = "occupancy",
        oracle: Any = "gpu",
        initial_state: InitialState | None = None,
    ) -> None:
        __tracebackhide__ = True
        from tbsched.campaigns.judge import Judge
        from tbsched.campaigns.oracles import open_oracle
        from tbsched.campaigns.shrinking.pasted import code_of, observing, predicting
        from tbsched.hardware.catalogue import device as find_device

        is_open = oracle is None or (isinstance(oracle, str) and oracle == "gpu")
        with open_oracle(request.getfixturevalue(_GPU) if is_open else oracle) as source:
            judge = Judge(
                source, find_device(device), policy, initial_state, level, past_refusal=True,
                hasty=False,
            )  # fmt: skip
            case = judge.judge(judge.predict(seq))
        if not case.agrees:
            model = predicting(device, policy, initial_state)
            code = code_of(case.diff, level, model, observing(source), judge.spec.name)
            pytest.fail(f"{case.diff}\n\n{code}", pytrace=False)

    return check
