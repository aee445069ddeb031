"""Running a conversation from a command: its request, console, signals, hooks and recordings."""
