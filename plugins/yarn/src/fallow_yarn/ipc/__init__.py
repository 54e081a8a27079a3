"""Hadoop IPC, version 9, as a client: one kept connection, and calls over it, each with a deadline.

`wire` turns calls into bytes and bytes into answers and does no I/O; `transport` is a socket that keeps a deadline;
`connection` joins the two, and `remote` says what the server's errors mean. The package knows nothing of node sizes.
It starts no thread, never blocks beyond the deadline it is given, and never reserves memory because a peer announces
a length.
"""
