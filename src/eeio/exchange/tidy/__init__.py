"""Campaigns as tables for Parquet and SQL (docs/reference/parquet.md)."""
