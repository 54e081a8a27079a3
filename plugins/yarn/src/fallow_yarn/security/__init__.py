"""Kerberos for this plugin's connections: who we are, to whom we talk, and how what is sent is protected.

`login` has the credentials and does all that may ask a KDC, `sasl` opens a Hadoop IPC connection with them, `negotiate`
a web page. The Kerberos itself is that of the system's GSSAPI library, by the package `gssapi` (the extra
`fallow-yarn[kerberos]`), which nothing here imports before a cluster asks for it.
"""
