"""Authentication and TLS for all connections of a cluster.

`access` and `web_access` make connections as the settings ask for. With Kerberos `login` has the credentials and is the
only module that asks the KDC; `sasl` opens an IPC connection with them, and `negotiate` authenticates web requests.
Kerberos is the system's GSSAPI library, through the package `gssapi` (the extra `fallow-yarn[kerberos]`), which is not
imported before a cluster asks for it. Nothing here reads a page or makes a call of its own.
"""
