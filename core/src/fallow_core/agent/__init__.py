"""The agent's loop: it joins what the plugins list with what is measured, decides, and has tasks ended.

`seen` joins, `agent` decides and follows what it ordered, `orders` carries the orders out, `endings_file` keeps what
has to survive a kill. `squeeze` slows batch down: `placements` and `batch_groups` find where it is, in each `tree` of
control groups; `memberships` reads where processes are, for all trees. `reclaiming` pushes its memory out, `cpu_sets`
chooses its CPUs; `knob_changes` says what has to be written, `knobs` writes it, `knobs_file` keeps how it was found.
It protects one node and knows nothing of sharing; all state belongs to the thread that ticks it.
"""
