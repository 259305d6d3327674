"""Probes: each asks for a few values, with its sequences and a pure function that reads them."""
