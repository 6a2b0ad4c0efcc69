"""What records mean: observation -> metric -> summary -> characterization; comparisons of
campaigns; guidelines and costs.

May import `eeio.record`, `eeio.traces`, `eeio.statistics`, `eeio.units` and `eeio.files`. The
documents of its findings are in `eeio.report.documents`.
"""
