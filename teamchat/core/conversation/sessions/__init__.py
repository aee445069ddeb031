"""Whole sessions: branched, compared, moved, deleted, and those of agent CLIs opened and adopted."""
