"""Rankers made of many trees."""
