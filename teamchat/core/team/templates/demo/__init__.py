"""The agents of `teamchat demo`: they work in the folder, and speak line by line, to be seen and stopped."""
