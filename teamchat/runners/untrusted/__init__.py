"""Reads files, JSON, TOML and paths that somebody else wrote. Every room may use it; it uses nothing of the runners."""
