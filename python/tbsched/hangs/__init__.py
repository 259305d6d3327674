"""Programs that hang: what is known of one, which work can never start, why, and what to change."""
