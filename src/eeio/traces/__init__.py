"""File I/O of programs: traces of several tools -> events -> phases."""
