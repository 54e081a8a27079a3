"""The agent's loop: it joins what the plugins list with what is measured, decides, and has tasks ended.

`seen` joins, `agent` decides and follows what it ordered, `orders` carries the orders out, `endings_file` keeps what
has to survive a kill. `squeeze` slows batch down: `placements` and `batch_groups` find where it is, `knobs` changes
control groups, `knobs_file` keeps how they were found. It protects one node and knows nothing of sharing; all state
belongs to the thread that ticks it.
"""
