"""Drawers of a campaign's sequences: one interface, a file for each kind."""
