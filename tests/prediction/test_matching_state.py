"""The state that matches an observation, found at once, against predicting from each."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tbsched.campaigns.space.options import SequenceOptions
from tbsched.comparison.compare import compare
from tbsched.hardware.catalogue import device
from tbsched.prediction.predict import matching_state, predict
from tbsched.program.sequence import Sequence
from tbsched.strategies import sequences
from tbsched.traces.trace import Trace

H200 = device("h200")
STATES = [*H200.initial_states()]
SEQUENCES = sequences(H200, SequenceOptions(max_launches=4, clusters=(1, 2), carveouts=(100, None)))


@settings(max_examples=60, deadline=None)
@given(seq=SEQUENCES, state=st.sampled_from(STATES))
def test_it_is_the_first_from_which_the_prediction_is_exact(seq: Sequence, state: object) -> None:
    seen = predict(seq, H200, initial_state=state)  # type: ignore[arg-type]
    exact = [s for s in STATES if compare(predict(seq, H200, initial_state=s), seen).exact]
    assert state in exact
    assert matching_state(seen, H200, None, STATES) == exact[0]
    others = [s for s in STATES if s not in exact]
    assert matching_state(seen, H200, None, others) is None


@settings(max_examples=60, deadline=None)
@given(seq=SEQUENCES, data=st.data())
def test_no_state_matches_a_block_on_another_sm(seq: Sequence, data: st.DataObject) -> None:
    seen = predict(seq, H200)
    number = data.draw(st.integers(0, len(seen) - 1))
    smid = seen[number].smid.copy()
    block = data.draw(st.integers(0, len(smid) - 1))
    smid[block] = 131 if smid[block] != 131 else -1
    placements = list(seen.placements)
    placements[number] = dataclasses.replace(placements[number], smid=smid)
    moved = Trace(seq, seen.device, tuple(placements))
    exact = [s for s in STATES if compare(predict(seq, H200, initial_state=s), moved).exact]
    found = matching_state(moved, H200, None, STATES)
    assert found == (exact[0] if exact else None)
    assert not np.array_equal(seen[number].smid, smid)
