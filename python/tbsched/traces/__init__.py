"""Where the blocks of a sequence went, predicted or observed, and the files that hold it."""
