"""A member's prompt, put together from the conversation's history, its summary and the layers."""
