"""Every result as text, and in a few words."""
