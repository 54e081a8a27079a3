"""TCP connections with a deadline: the transport of both Hadoop IPC and HTTP.

`channel` is a connected socket, with or without TLS; `endpoint` an address with the setting that it came from;
`deadline` the end of a caller's time. Nothing here knows a protocol above TCP and TLS.
"""
