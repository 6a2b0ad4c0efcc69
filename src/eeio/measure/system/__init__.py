"""The system under test: devices, file systems, cache layers and frequency."""
