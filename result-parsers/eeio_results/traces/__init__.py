"""What a program did to its files: traces of several tools -> events -> phases."""
