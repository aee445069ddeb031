"""Checks whether what a team needs is there."""
