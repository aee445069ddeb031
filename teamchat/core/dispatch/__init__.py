"""Turns on other machines: the orders to a host, the pieces that come back, and the engine that carries them."""
