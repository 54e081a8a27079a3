"""The configuration files: YAML with lines, the models, loading with every error at once, and templates.

It reads files and validates; it starts nothing and imports only plugins that a file names.
"""
