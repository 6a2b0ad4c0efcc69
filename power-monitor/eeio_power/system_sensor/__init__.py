"""Which sensors measure the complete system: one model of sensors, one table of roles, one list of
rules. A meter lists its sensors; `rules.choose` says which of them count, or why none does."""
