"""The rules of a conversation: one pure function, its events and its actions."""
