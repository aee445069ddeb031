"""Run by `python3 -m unittest`."""
