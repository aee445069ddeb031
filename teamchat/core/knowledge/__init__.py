"""The files that a team names as its knowledge: found, cut into pieces, searched, and quoted within a budget."""
