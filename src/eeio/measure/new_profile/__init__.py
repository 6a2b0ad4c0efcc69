"""`eeio profile new`: a test profile, and a suite of it, made of a command."""
