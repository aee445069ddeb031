"""Undo and redo: of messages and queue, of files, and of both together as a person is shown them."""
