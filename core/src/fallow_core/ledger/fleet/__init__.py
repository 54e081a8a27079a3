"""The ledger of all nodes at once, in NumPy arrays of whole numbers: the same as `node_ledger` and `due_rows` give.

The plain functions are the reference, and explain a number on demand; this package is for who has thousands of nodes.
`columns` says how rows are laid out, `writing` brings the inputs of a node there, `block` computes some thousand nodes,
`fleet` all of them. Whoever computes one node does not import it: it needs NumPy. No I/O, no clock, no threads: blocks
share nothing while they are computed, so the caller may compute them side by side.
"""
