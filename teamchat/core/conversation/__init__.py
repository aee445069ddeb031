"""A conversation: what was said is addressed, stored and routed, and turns are run until nobody is left to speak."""
