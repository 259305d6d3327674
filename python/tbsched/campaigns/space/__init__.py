"""What a campaign draws sequences from, and how Hypothesis searches it."""
