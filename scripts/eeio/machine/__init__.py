"""Machines as data: what eeio reads of one, kept in a file and laid out again elsewhere."""
