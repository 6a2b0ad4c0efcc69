"""Tables of campaigns for Parquet and SQL."""
