"""The migrations of the store, a file each. The SQL of a released migration never changes."""
