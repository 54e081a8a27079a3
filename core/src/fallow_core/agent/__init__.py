"""Protects one node: `eviction` terminates tasks, `throttling` slows batch down, `probing` says when to measure again.

It knows nothing of sharing capacity between nodes. All state belongs to the thread that runs the loop.
"""
