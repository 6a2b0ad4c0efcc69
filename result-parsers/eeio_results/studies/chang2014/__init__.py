"""Chang et al. 2014, "How processor speedups can slow down I/O performance"."""
