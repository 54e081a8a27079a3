"""The kernel's control groups behind one interface: v1, v2, and hosts that have both.

`find` finds where the tree of a controller is mounted, `hierarchy` reads and changes groups there, and `files` makes
the calls to the kernel. `cpu`, `memory`, `cpuset` and `pressure` know the formats of control files. The package decides
nothing and stores no original values. A group is identified by its path below the root, without leading and trailing
`/`; the root is the empty path.
"""
