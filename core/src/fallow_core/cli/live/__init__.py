"""The live view of a running Fallow, for `fallow top` and `fallow demo`; `fallow watch` uses its `terminal`.

`LiveView` runs the view; `Extra` is what a caller shows beside it. Only `keys`, `terminal`, `polling` and `view` read a
clock or a terminal; the other modules are pure. Nothing here changes the Fallow that is shown.
"""
