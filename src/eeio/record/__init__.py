"""The record of a run, and of a campaign: types (`run`, `design`, `reading`), the store, the
schemas, and `tools`: what a parser makes of a tool's output.

The contract between measuring and analysing. May import `eeio.units`, `eeio.files` and
`eeio.statistics`.
"""
