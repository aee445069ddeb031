"""A run as a person sees it at a terminal: finished blocks in the scrollback, and a few changing lines below them."""
