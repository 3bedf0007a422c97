"""Points that add up: scorecards, red flags."""
