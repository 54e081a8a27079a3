"""The conformance tests of this plugin; needs `fallow-hookspecs[testing]`.

`framework` adapts a YARN, embedded or real, to the suite of `fallow_hookspecs`; `suite` runs it against the embedded
one, for `fallow plugins check yarn`. Nothing here is imported by the plugin.
"""
