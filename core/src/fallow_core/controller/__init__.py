"""Runs the rounds of all nodes and clusters, and publishes the offers that are due.

All state is owned by the one thread that calls `Controller.tick`; nothing here blocks on a plugin.
"""
