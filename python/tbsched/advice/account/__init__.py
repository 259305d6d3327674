"""Where the time of a profile went: every nanosecond once, by cause."""
