"""Boards: what queries alone tell of a GPU, and the map of the one here."""
