"""Teamchat's own files: where they are, how they are locked and replaced as a whole."""
