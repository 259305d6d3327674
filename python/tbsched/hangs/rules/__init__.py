"""The rules of :func:`tbsched.hang`: each takes the evidence and finds a kind of hang, or none."""
