"""NodeManagers and their containers as this host shows them.

`tasks.NodeTasks` is the way in: it lists the containers of a node, ends them, and says where they are in the cgroup
tree. `web` asks the NodeManagers; `processes` reads /proc, and `daemons`, `leaders` and `proof` say from that whose a
process is; `tree` and `seen` only compute; `kill` signals. Nothing here asks anybody but this host, trusts a file that
a task can write, or signals a process that was not shown to be a container's.
"""
