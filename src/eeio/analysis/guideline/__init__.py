"""The number of low-power servers that replace a traditional one, and the cost."""
