"""Text functions that know nothing of conversations: cleaning, redaction, splitting into words."""
