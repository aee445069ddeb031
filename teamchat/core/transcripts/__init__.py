"""Conversations as transcripts: collected, without secrets, written, read and imported."""
