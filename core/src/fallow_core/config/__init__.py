"""The configuration files: YAML with lines, the models, loading with every error at once, and templates.

`changes` says what a running Fallow makes of files that were read again, `watch` when they are worth it.

It reads files and validates; it starts nothing and imports only plugins that a file names.
"""
