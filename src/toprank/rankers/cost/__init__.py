"""Trees trained for what mistakes cost."""
