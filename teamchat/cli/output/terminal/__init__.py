"""What a person sees of a run at a terminal: finished blocks in the scrollback, and a few changing lines below them."""
