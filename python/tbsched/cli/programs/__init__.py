"""The verbs that take real programs."""
