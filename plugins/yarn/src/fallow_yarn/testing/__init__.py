"""An embedded YARN: a small ResourceManager and NodeManagers in Python, for tests, demonstrations and plugin authors.

It speaks Hadoop IPC and serves the pages that this plugin reads, and its containers are real processes. It behaves as
the real one was measured to, delays and traps included, in what this plugin can see of it; the same protocol tests run
against both. It is no YARN to run work on: nothing is secured, and it listens on loopback only.

The way in is `fallow_yarn.testing.cluster.EmbeddedYarn`. Nothing outside of this package may import it but tests and
`fallow demo`. Modules that a NodeManager's process imports (`node`, `launching`, `listener`, `web`) stay light.
"""
