"""The kernel's control groups behind one interface: v1, v2, and hosts that have both.

`find` says where the tree of a controller is mounted, `hierarchy` reads and changes groups there, `cpu` knows the CPU
knobs, `files` makes the calls. It decides nothing, and remembers nothing: what was there before is kept by its caller.
Groups go by their path below the root, without a `/` at its ends; the root itself is the empty path.
"""
