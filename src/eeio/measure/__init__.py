"""What is measured: the plan and the runs of a campaign, and the machine that they run on.

May import `eeio_power`, `eeio_results`, `eeio_parsers`, `eeio_limits`, `eeio.errors` and
`eeio.paths`. `eeio.commands` and `eeio.exchange` import it.
"""
