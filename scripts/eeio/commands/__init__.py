"""One file a subcommand: its options, and what it does with them."""
