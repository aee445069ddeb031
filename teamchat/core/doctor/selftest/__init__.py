"""The self-test of installed agent CLIs: real turns against a scripted model, watched on the wire."""
