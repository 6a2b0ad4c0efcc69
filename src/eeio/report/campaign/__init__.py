"""The report of campaigns: their characterization as tables, sentences and JSON."""
