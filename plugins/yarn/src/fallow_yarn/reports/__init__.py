"""Turns what a ResourceManager answered into the contract's report.

`reporter` composes it; `rows`, `capabilities`, `pending` and `largest` compute its parts and do no I/O; `own_nodes`
finds the NodeManagers of each node. Nothing here sends a size or asks a NodeManager.
"""
