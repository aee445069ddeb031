"""What a member is told: the conversation's history, its summary and the layers, put together as one prompt."""
