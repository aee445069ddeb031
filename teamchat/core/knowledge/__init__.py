"""Files that a team names as its knowledge: read, cut into pieces, searched, and quoted within a budget."""
