"""Recordings of conversations: written, read, replayed and compared."""
