"""Changes that might have let a launch run sooner: a kind is a file, and a row of `table`."""
