"""Campaigns that search the sequences on which a prediction and a GPU disagree.

Hypothesis is imported when a campaign begins, not before.
"""

from tbsched.campaigns.campaign import fuzz, record
from tbsched.campaigns.keeping import merge_corpora
from tbsched.campaigns.oracles import ModelGpu, RecordedOracle
from tbsched.campaigns.order import order_differs
from tbsched.campaigns.results import Counterexample, Lost, Report, Unstable
from tbsched.campaigns.scale.workers import Workers
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.traces.oracle import Oracle

__all__ = [
    "Counterexample",
    "Lost",
    "ModelGpu",
    "Oracle",
    "RecordedOracle",
    "Report",
    "SequenceOptions",
    "Unstable",
    "Workers",
    "fuzz",
    "merge_corpora",
    "order_differs",
    "record",
]
