"""One round: from what is observed of nodes and clusters to ledgers, offers and take-backs. Pure functions.

`round.plan_round` is the whole of it. `observations` are its inputs, `state` is what it remembers between rounds and
`result` what it returns. `nodes` computes one node, `sums` keeps the sums of a cluster, `take_back`, `largest_node`,
`removal` and `publish` are the rules that look at more than one node. `memory` is what has to survive a restart.

It does no I/O, reads no clock and calls no plugin: times are arguments, log lines are returned as events. `fallow run`,
the simulated day and the histories of the tests call the same function.
"""
