"""Fallow core."""
