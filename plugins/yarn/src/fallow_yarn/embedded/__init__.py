"""Not for production: an embedded YARN for tests, the demo and plugin authors. Nothing in it is part of the plugin.

It is a small ResourceManager and NodeManagers in Python. It speaks Hadoop IPC and serves the pages that the plugin
reads, and its containers are real processes. In all that the plugin can see of it, it behaves as the real YARN was
measured to, delays and traps included; the same protocol tests run against both. It secures nothing and listens on
loopback only: do not run work on it.

The way in is `cluster.EmbeddedYarn`. Only tests, `fallow demo` and `fallow_yarn.testing` may import this package;
import-linter checks that no other room of the plugin does. The modules that a NodeManager's process imports (`node`,
`container_launcher`, `listener`, `http_server`) stay light.
"""
