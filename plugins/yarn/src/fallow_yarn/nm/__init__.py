"""The NodeManagers of this host: their processes, their addresses and the containers that they list.

`procfs` and `sockets` read /proc; `daemons` finds the NodeManager processes; `discovery` finds out their ids without a
ResourceManager; `containers` reads the list of containers of one. Nothing here asks another host or signals a process.
"""
