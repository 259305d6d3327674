"""Who draws the sequences of a campaign: one interface, a file for each way."""
