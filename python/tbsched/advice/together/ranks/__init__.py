"""Whether launches of several GPUs that wait for each other can hang, whatever rank is late."""
