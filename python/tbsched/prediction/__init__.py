"""Where the model says that the blocks of a sequence go."""
