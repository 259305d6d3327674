"""Hypothesis strategies for tests of your own: launches, sequences and timed programs.

What they draw can run on the device that they are given, and shrinks towards few, small events.
They need Hypothesis: ``pip install hypothesis``.

    >>> from hypothesis import given, settings
    >>> import tbsched as tb
    >>> from tbsched.strategies import sequences
    >>> @settings(max_examples=20, deadline=None)
    ... @given(sequences("h200"))
    ... def test_the_first_launch_does_not_wait_behind_another(seq):
    ...     assert (tb.predict(seq, "h200")[0].smid >= 0).any()
    >>> test_the_first_launch_does_not_wait_behind_another()
"""

from tbsched.campaigns.space.options import SequenceOptions
from tbsched.campaigns.space.strategies import launches, prefixes, programs, sequences

__all__ = ["SequenceOptions", "launches", "prefixes", "programs", "sequences"]
