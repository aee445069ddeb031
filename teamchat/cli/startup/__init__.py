"""What parses and begins a command: words, options, pipes, the workspace, and how errors become exits."""
