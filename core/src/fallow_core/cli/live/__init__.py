"""The live view of a running Fallow, for `fallow top` and whoever has something to show beside it.

`snapshot`, `state`, `arranged`, `record`, `columns`, `panels`, `screen` and `lines` are pure: they neither read a clock
nor a terminal. `keys`, `feed` and `live` are the edges. Nothing here changes anything in the Fallow that it shows.
"""
