"""The formats of `teamchat export`, one a file."""
