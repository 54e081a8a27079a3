"""Lists and terminates the containers of this host's NodeManagers, as tasks of the contract.

`node_tasks` is the way in. `container_tracking` joins what NodeManagers list with the processes found;
`container_processes` and `process_tree` determine the processes of each container; `termination` signals them, after
`process_check` has verified each one, and `rm_termination` uses the ResourceManager instead; `placement` reads their
cgroups. Nothing here trusts a file that a task can write, or signals a process that is not proven to be a container's.
"""
