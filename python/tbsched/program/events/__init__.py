"""What the host can do, an event each: one file per family, and one table of them all."""
