"""A scripted model: a server on loopback that answers the real CLIs without a model."""
