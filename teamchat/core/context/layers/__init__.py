"""The layers of a prompt: what a member is told beside its own instructions and the history."""
