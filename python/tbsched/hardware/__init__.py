"""What a GPU is: devices as data, each value with its provenance."""
