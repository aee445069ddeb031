"""The first team of a workspace: what `teamchat init` writes."""
