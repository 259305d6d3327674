"""A device drawn: every SM once, in the row of its GPC."""

from __future__ import annotations

import pytest

import tbsched as tb
from tbsched.show import plot

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", ["h200", "rtx3090"])
def test_the_map_shows_each_sm_in_the_row_of_its_gpc(name: str) -> None:
    spec = tb.device(name)
    axes = plot(spec).axes[0]
    row_of = {int(text.get_text()): int(text.get_position()[1]) for text in axes.texts}
    assert sorted(row_of) == list(range(spec.sms))
    for row, tpcs in enumerate(spec.gpcs):
        sms = {tpc * spec.sms_per_tpc + k for tpc in tpcs for k in range(spec.sms_per_tpc)}
        assert sms == {sm for sm in row_of if row_of[sm] == row}
