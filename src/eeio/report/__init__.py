"""Output for people and programs: tables once, then one module per format."""
