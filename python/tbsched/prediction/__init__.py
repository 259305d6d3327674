"""Predictions of the SM of every block of a sequence."""
