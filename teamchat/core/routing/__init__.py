"""From what a message says to whom it asks to speak."""
