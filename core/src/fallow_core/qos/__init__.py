"""QoS decisions for one node: the limits of batch, and the tasks to terminate. Pure: no I/O, no clock.

One module per strategy. `cpu_suppress` decides how much CPU batch may use and `cpuset` on which CPUs, `memory_reclaim`
how much of its memory is reclaimed. The others terminate tasks, but only if throttling does not suffice (`relief`).

A strategy (`memory_evict`, `cpu_evict`, `overdraft_evict`) returns a `need`: the amount to free. `victims` chooses the
tasks with the least harm that free it, `plan` combines the strategies, and `terminations` follows each chosen task
until it is gone.
"""
