"""Checks: the commands that teamchat runs itself, each with a record of its run."""
