"""What runs inside the SMs."""
