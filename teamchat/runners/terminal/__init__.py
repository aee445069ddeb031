"""Programs that have nothing but a terminal."""
