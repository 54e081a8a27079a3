"""The controller's loop: it joins samples, plugin instances and the ledger, and publishes what is due.

`controller` is the ledger of all nodes over all clusters. `cluster` drives one plugin instance, with `reads` for what
it asks. `journal` keeps what has to survive a kill, `remembering` says what that is, `leaving` which sizes stay behind,
`departing` what becomes of a cluster that was removed.
All state is owned by the one thread that calls `Controller.tick`; nothing here blocks on a plugin.
"""
