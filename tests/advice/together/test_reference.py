"""The search against the literal reference: the same verdict, and as short a witness.

``TBSCHED_CASES=10000`` in the environment draws as many cases.
"""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from advice.together.cases import cases, large_cases
from advice.together.reference import Case, History, random_history, shortest
from helpers import examples
from tbsched.prediction.predict import predict
from tbsched.prediction.together.search import FOREVER, Found, Question, search, witness_sequence

CASES = int(os.environ.get("TBSCHED_CASES", examples(500)))


def asked(case: Case) -> Found:
    question = Question(case.launches, (tuple(sorted(case.group)),), case.after)
    return search(case.spec, case.policy, question)


def check_witness(case: Case, found: Found) -> None:
    """Whether a launch of the witness waits for ever, as it says."""
    sequence, times = witness_sequence(case.launches, found, case.spec, case.policy)
    trace = predict(sequence, case.spec, case.policy, found.state, issue_times=times)
    order = [step.launch for step in found.steps if not step.leaving]
    own = trace[order.index(found.stranded)]
    if sequence.timed:
        assert own.start_ns is not None
        assert ((own.smid < 0) | (own.start_ns >= FOREVER * 1e9)).any()
    else:
        assert own.final_smid is not None
        assert (own.final_smid < 0).any()


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_search_agrees_with_the_reference(case: Case) -> None:
    found = asked(case)
    expected: History | None = shortest(case)
    leaving = sum(bool(step.leaving) for step in found.steps)
    event(f"{found.verdict}, proof {found.proof}, steps {len(found.steps)}, leaving {leaving}")
    note(str(found))
    note("no history" if expected is None else str(expected.steps))
    if found.verdict == "undecided":
        return
    assert (found.verdict == "unsafe") == (expected is not None)
    if expected is not None:
        assert len(found.steps) == len(expected.steps)
        check_witness(case, found)


@settings(max_examples=CASES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(large_cases(), st.integers(0, 2**32 - 1).map(random.Random))
def test_no_history_strands_what_is_safe(case: Case, rng: random.Random) -> None:
    question = Question(case.launches, (tuple(sorted(case.group)),), case.after, plays=2_000)
    found = search(case.spec, case.policy, question)
    event(f"{found.verdict}, proof {found.proof}")
    if found.verdict == "unsafe":
        check_witness(case, found)
    if found.verdict == "safe":
        for _ in range(5):
            history, strands = random_history(case, rng)
            assert not strands, history.steps
