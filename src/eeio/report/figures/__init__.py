"""Plots and pictures, drawn by matplotlib or as SVG."""

from eeio.report.figures.font_cache import keep_from_others

keep_from_others()
