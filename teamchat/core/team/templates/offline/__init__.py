"""The agents of `teamchat init --template offline`."""
