"""`teamchat chat`: a prompt at the bottom of the terminal that stays usable while members work."""
