"""Pictures that are part of the HTML: maps of SMs, and timelines."""
