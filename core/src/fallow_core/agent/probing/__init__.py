"""When the node is measured again: quick probes between full ones, and events of the kernel. It measures and decides
nothing about tasks.
"""
