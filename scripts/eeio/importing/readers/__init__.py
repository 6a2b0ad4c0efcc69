"""Readers of result files that other people made, one module per tool."""
