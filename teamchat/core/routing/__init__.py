"""The requests in a message: who speaks next, and what else its markers say."""
