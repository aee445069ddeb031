"""The parsing and the start of a command: words, options, pipes, the workspace, and exits for errors."""
