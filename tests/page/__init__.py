"""The report's page as a reader has it: in a real browser, and its script by itself."""
