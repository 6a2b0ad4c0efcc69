"""Pavan et al. 2018, "Energy Efficiency and I/O Performance of Low-Power Architectures"."""
