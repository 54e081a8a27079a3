"""The command `fallow`: one module a sub-command, each imported only when it is called.

It parses arguments and prints; what it prints is computed elsewhere. It is the only layer that writes to stdout.
"""
