"""Results that others wrote, as campaigns: PTS result files, and whatever a map describes."""
