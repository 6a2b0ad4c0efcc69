"""Panadero et al. 2012: an application held against the characterization."""
