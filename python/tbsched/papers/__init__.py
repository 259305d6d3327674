"""What papers claim, as functions to be compared with the model."""
