"""`eeio bench`: joules of any command."""
