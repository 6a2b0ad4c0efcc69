"""Former names of modules in `eeio.exchange.pts`, which installed modules of PTS start."""
