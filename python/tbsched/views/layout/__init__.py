"""The numbers that HTML and pictures share; nothing is drawn here."""
