"""Layered context (seed 001): what a member is told beside its own text and the history, gathered here."""
