"""What readers of profiles share."""
