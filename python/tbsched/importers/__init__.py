"""Sequences out of files that others wrote: a format is a file and a row of `readers`."""
