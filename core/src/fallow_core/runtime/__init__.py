"""The processes `fallow run` and `fallow agent`: event loop, reload of the files, plugin instances, restore.

Each module joins parts of lower layers and hands on only what a part needs. It decides nothing about capacity or tasks.
"""
