"""What results mean: run records, tool output, the store, characterization and reports."""
