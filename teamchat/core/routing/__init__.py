"""What a message asks for: who speaks next, and what else its markers say."""
