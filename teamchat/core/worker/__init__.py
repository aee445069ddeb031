"""A worker: runs the turns of other teamchats on this machine, as far as its own file offers it."""
