"""Hadoop IPC, version 9, as a client: one kept connection, and calls over it, each with a deadline.

`wire` encodes calls and decodes answers and does no I/O; `connection` sends them over a channel of `net`; `remote` says
what the server's errors mean. Nothing here knows node sizes, starts a thread, blocks beyond a deadline, or reserves
memory because a peer announces a length.
"""
