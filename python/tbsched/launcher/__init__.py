"""Runs sequences on a real GPU and says where their blocks were."""
