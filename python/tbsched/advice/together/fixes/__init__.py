"""Changes that make launches resident together: a kind is a file, and a row of `table`."""
