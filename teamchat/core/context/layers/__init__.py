"""The layers of a prompt: what a member is told besides its own instructions and the history."""
