"""The configuration files: reading, validation with all errors at once, schemas, templates, and reloading.

`document` reads YAML with line numbers, the `*_models` validate it, `from_models` turns models into `settings` and
policies, `load` does all of that for a directory. `file_stamps` detects changes; `changes` decides what is in force.
Only plugins that a file names are imported.
"""
