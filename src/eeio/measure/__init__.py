"""What is measured: the plan and the runs of a campaign, benches, drives, traces of programs.

May import `eeio.machine` and what is below it, `eeio_power`, `eeio_parsers`, `eeio.pts` and
`eeio.exchange`.
"""
