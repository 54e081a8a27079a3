"""The host as its kernel shows it: counters, memory, processes, control groups, events. It decides nothing."""
