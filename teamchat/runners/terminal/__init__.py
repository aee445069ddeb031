"""Programs that have only a terminal."""
