"""The ResourceManager: its nodes, the sizes in force, its settings, and changes of node sizes.

`connect` makes a `manager.Manager`: a `client.ResourceManager`, or an `active.ActiveManager` for several. The other
modules are the parts of the client. `nodes`, `admin`, `refresh`, `signal` and `status` use Hadoop IPC; `scheduler`,
`facts` and `applications` read JSON; `in_force` and `history` find out which sizes the scheduler works with.
Nothing here knows Fallow's offers or hooks: sizes are in YARN's own units.
"""
