"""Slows batch down through control groups: finds its groups, plans what each control file should hold, and writes it.

It terminates no task; that is `eviction`.
"""
