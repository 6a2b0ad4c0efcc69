"""The number of low-power servers that replace a traditional one, and the cost of a TB.

May import `eeio.comparison` and what that may import.
"""
