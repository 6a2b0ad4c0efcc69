"""What a person or a program gets to see: tables once, then one file a format."""
