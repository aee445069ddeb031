"""The rules of a conversation: one pure function, and what it is given and gives back."""
