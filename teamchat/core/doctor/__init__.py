"""What a team needs, and whether it is there."""
