"""Makes photos smaller."""
