"""Which launches are resident at the same time: what the core's search finds."""
