"""The command `fallow`: one module a sub-command, each imported only when it is called.

It parses arguments and prints what other layers compute. No other layer writes to stdout.
"""
