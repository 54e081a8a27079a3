"""The live view of a running Fallow, for `fallow top` and whoever has something to show beside it.

All but `keys`, `feed` and `live` is pure: it neither reads a clock nor a terminal. `Live` is what runs the view;
`Extra` is what a caller shows beside it. Nothing here changes anything in the Fallow that is shown.
"""
