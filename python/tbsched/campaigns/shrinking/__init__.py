"""Shrinks disagreements to small counterexamples."""
