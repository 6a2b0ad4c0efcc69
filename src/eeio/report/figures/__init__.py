"""Plots and pictures, drawn by matplotlib or as SVG."""
