"""The ledger of all nodes at once, in arrays and compiled: the same integers as `node_ledger` and `due_rows` give.

The plain functions are the reference, and explain a number on demand; this package is for who has thousands of nodes.
`columns` says how rows are laid out, `writing` brings the inputs of a node there, `block` holds some thousand nodes,
`fleet` all of them. `node` and `due` go through the nodes of a block one by one, as the plain functions do; Numba
compiles them when they are first called. Whoever computes one node does not import this: it needs `fallow-core[fleet]`.
No I/O, no clock, no threads: blocks share nothing while they are computed, so the caller may compute them side by side.
"""
