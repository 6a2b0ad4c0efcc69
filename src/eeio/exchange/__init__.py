"""Campaigns from and to other formats: imports, PTS result files, tables for Parquet, bundles.

May import what `eeio.measure` may, and `eeio.measure`; `eeio.commands` imports it.
"""
