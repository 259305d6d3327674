"""What a profile does not say, found by inverting the model: how long blocks run."""
