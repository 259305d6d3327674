"""What shows in streams: priorities, hardware queues, resident grids and latencies."""
