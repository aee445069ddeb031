"""Processes: started under a guardian, followed, and ended."""
