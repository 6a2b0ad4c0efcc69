"""Calibration of a meter against a reference meter: `eeio meter calibrate --reference`."""
