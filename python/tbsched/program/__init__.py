"""What a user asks of the GPU: launches, releases, CUDA events, and how long blocks run."""
