"""All of the Phoronix Test Suite: its result files read and written, what its module asks of us."""
