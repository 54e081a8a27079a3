"""The host as its kernel shows it: counters, memory, processes. Reads only; decides nothing."""
