"""Campaigns from and to other formats: imports, tables for Parquet, bundles.

May import what `eeio.measure` may, `eeio.measure` and `eeio.pts`; `eeio.commands` imports it.
"""
