"""`fallow doctor`: what this host and its user allow, and what each plugin finds. It changes nothing.

`doctor` puts all findings together. `host` looks at what Fallow itself needs, `state` at the files of the state
directory, `throttling` at the ways to slow batch down, `lending` at the watermarks, `needs` at what a plugin says that
it needs, `clusters` asks the plugins.
"""
