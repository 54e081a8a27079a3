"""YARN's values: sizes, container ids, and which NodeManagers belong to a node. Pure: no I/O, no clock, no settings."""
