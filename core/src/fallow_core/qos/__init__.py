"""QoS decisions on the node: from what was seen to limits of batch and to which tasks are to end. Pure functions.

One file a strategy. `cpu_suppress` says how much CPU batch may use and `cpuset` on which CPUs, `memory_reclaim` how
much of its memory is pushed out; the others terminate tasks, and only when that did not bring enough (`plan`).

A strategy (`memory_evict`, `cpu_evict`, `overdraft_evict`) says what has to be freed: a `need`. `victims` chooses the
tasks with the least harm that suffice, `plan` joins the strategies, and `terminations` follows each task that was
chosen until it is seen gone. No I/O, no clock.
"""
