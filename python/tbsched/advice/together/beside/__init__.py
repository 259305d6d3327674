"""Launches that must be resident together, in programs that copy, wait and call functions."""
