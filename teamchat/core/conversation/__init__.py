"""A conversation: messages are addressed, stored and routed, and turns run until nobody is left to speak."""
