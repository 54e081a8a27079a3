"""The ResourceManager as this plugin uses it: its nodes, the sizes in force, its settings, and changing node sizes.

`client.ResourceManager` is the way in; the other modules are its parts. `in_force` and `size` only compute; `nodes`
and `admin` talk Hadoop IPC, `scheduler` and `facts` read JSON. Nothing here knows Fallow's ledger or hooks:
what to offer is decided elsewhere, and sizes are in YARN's own units.
"""
