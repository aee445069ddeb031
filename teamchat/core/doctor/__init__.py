"""Checks whether everything that a team needs is there."""
