"""Text itself: made harmless, without secrets, in words. It knows nothing of conversations."""
