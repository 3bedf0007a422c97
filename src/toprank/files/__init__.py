"""Files: models."""
