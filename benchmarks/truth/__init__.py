"""Campaigns simulated on worlds whose truth is known (benchmarks/adaptive_truth.py)."""
