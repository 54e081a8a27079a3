"""Core of Fallow: the batch ledger, the observation of nodes, the plugin host and the command `fallow`.

Layers, lowest first: `model`, `ledger`, `qos`, then `node`, `plugins` and `config`, then `controller` and `agent`,
`standalone`, and `cli`. A layer imports only lower ones. Core knows frameworks through `fallow_hookspecs` only and
imports no plugin by name.
"""
