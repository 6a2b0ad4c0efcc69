"""Analysis of results: run records, tool output, the store, characterization and reports."""
