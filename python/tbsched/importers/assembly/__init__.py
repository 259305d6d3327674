"""From the records of a profile to a program."""
