"""The journal of ext4: traced, and its commits delayed."""
