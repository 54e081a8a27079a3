"""NodeManagers as the host shows them: their processes. Reads only, and asks nobody but this host."""
