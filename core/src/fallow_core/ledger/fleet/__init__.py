"""The ledger of all nodes at once, in arrays and compiled: the same integers as `node_ledger` and `due_rows` give.

The plain functions are the reference, and explain a number on demand; this package is for who has thousands of nodes.
`columns` says how rows are laid out, `writing` brings the inputs of a node there, `block` holds some thousand nodes,
`fleet` all of them. They are computed some at a time, side by side: `bringing` puts them into the lanes of `computed`,
`node` and `due` follow the plain functions, each rule a loop over the lanes. Numba compiles them when they are first
called. Whoever computes one node does not import this: it needs `fallow-core[fleet]`.
No I/O, no clock, no threads: blocks share nothing while they are computed, so the caller may compute them side by side.
"""
