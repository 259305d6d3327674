"""What runs inside an SM."""
