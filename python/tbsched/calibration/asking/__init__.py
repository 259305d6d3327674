"""Experiments of probes: runs of sequences, elimination of candidate devices, and the evidence."""
