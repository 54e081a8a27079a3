"""The contract between the Fallow core and a plugin for one batch framework."""
