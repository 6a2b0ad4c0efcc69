"""Machines as data: all that eeio reads of one, stored in a file and replayed elsewhere."""
