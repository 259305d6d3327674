"""Campaigns cut into units, which any number of processes run."""
