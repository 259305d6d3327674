"""Why a program of a profile ran as it did, and what to change: one file per question."""
