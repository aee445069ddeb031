"""One turn of a member: settled before anything starts, then run and judged."""
