"""What to change in a program: orders of launches, block sizes."""
