"""How many low-power servers stand in for a traditional one, and what that costs."""
