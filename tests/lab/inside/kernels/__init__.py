"""Real kernels, and what runs and times them."""
