"""Journal commits of a file system: how they are traced, and how they can be batched."""
