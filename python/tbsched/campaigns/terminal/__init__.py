"""What a person at the terminal sees and presses while a campaign runs."""
