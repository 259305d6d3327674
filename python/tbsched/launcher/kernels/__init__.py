"""What compiled kernels use: a library of kernels is a file and a row of `launch_of`."""
