"""Whether launches fit beside each other: room, the largest safe grid, and what strands a block."""
