"""Decides when the node is measured again: by quick probes between full probes, and by kernel events.

It decides nothing about tasks.
"""
