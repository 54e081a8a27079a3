"""The kernel's control groups behind one interface: v1, v2, and hosts that have both.

`find` says where the tree of a controller is mounted, `hierarchy` reads and changes groups there, `files` makes the
calls. `knob` names what can be set; `cpu`, `memory` and `cpuset` know what the texts mean. It decides
nothing, and remembers nothing: what was there before is kept by its caller.
Groups go by their path below the root, without a `/` at its ends; the root itself is the empty path.
"""
