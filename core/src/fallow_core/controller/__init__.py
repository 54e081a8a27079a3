"""The controller's loop: it joins samples, plugin instances and the ledger, and publishes what is due.

`cluster` drives one plugin instance, `controller` the ledger of all nodes over all clusters, `journal` keeps what has
to survive a kill. All state is owned by the one thread that calls `Controller.tick`; nothing here blocks on a plugin.
"""
