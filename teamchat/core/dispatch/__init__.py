"""Turns on other machines: what is sent to a host, what comes back, and the engine that carries it."""
