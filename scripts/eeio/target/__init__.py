"""What is measured: devices, file systems and cache layers, set, verified and put back."""
