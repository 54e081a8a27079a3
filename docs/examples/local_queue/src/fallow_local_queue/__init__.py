"""A plugin of Fallow for a queue of processes on this host."""
