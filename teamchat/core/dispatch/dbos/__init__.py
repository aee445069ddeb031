"""Turns on other machines over DBOS (3.4): a durable queue, streams and cancelling in a database.

Used of it: launch, workflow, step, register_queue, listen_queues, enqueue, streams, cancel, status, delete, a client
and a serializer. Nothing outside of this package imports it, and its own tables are neither read nor written by hand.
"""
