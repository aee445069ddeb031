"""The team file: found, checked, trusted, and made into the team that the rest of the program sees."""
