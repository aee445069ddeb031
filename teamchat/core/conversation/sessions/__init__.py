"""Whole sessions: branched, compared, moved and deleted; sessions of agent CLIs: opened and adopted."""
