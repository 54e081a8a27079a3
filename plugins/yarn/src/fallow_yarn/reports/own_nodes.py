"""The NodeManagers of each node, among those that the ResourceManager listed last."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from fallow_hookspecs import Daemon, Node
from fallow_yarn.model.node_matching import MatchingRules, by_host, own_ids, superseded
from fallow_yarn.rm.readings import NodeReading, live


class OwnNodes:
    """Finds the NodeManagers of a node. Both lanes use one: its values are replaced, never changed.

    `readings`: all nodes of the newest report.
    """

    def __init__(self, rules: MatchingRules) -> None:
        self._rules = rules
        self.readings: Mapping[str, NodeReading] = {}
        self._indexed: tuple[Mapping[str, object], Mapping[str, list[str]]] = ({}, {})
        self._last_seen: dict[str, int] = {}
        self._superseded: dict[str, frozenset[str]] = {}
        self._strangers: dict[str, tuple[int, ...]] = {}

    def of(self, node: Node, listed: Mapping[str, object] | None = None) -> list[str]:
        """The ids of a node's NodeManagers, among those listed; by default those of the newest report."""
        listed = self.readings if listed is None else listed
        indexed, ids_by_host = self._indexed
        if indexed is not listed:
            ids_by_host = by_host(listed)
            self._indexed = (listed, ids_by_host)
        return own_ids(ids_by_host, node, self._rules)

    def matching(self, node: Node, node_ids: Iterable[str]) -> list[str]:
        """Those of a few ids that belong to a node."""
        return own_ids(by_host(node_ids), node, self._rules)

    def web_addresses(self, node: Node) -> dict[str, str]:
        """The web addresses of a node's NodeManagers, without those that are gone or superseded."""
        readings, replaced = self.readings, self.superseded(node)
        ids = (node_id for node_id in live(self.of(node, readings), readings) if node_id not in replaced)
        return {node_id: readings[node_id].node.http_address for node_id in ids}

    def superseded(self, node: Node) -> Collection[str]:
        """The ids of a node that have a successor at another port; see `note_listening`."""
        return self._superseded.get(node.name, ())

    def note_listening(self, node: Node, ids: Sequence[str], daemons: Sequence[Daemon], now: int) -> None:
        """Determine which ids of a node have a successor, from the NodeManager processes found at `now`.

        Nothing is determined while the sockets of one process cannot be read: it may be any of them.
        """
        if any(daemon.framework_node is None for daemon in daemons):
            return
        listening = {d.framework_node: d.process.start_ticks for d in daemons if d.framework_node is not None}
        self._last_seen.update(dict.fromkeys(listening, now))
        known = {node_id: self._last_seen[node_id] for node_id in ids if node_id in self._last_seen}
        self._superseded[node.name] = superseded(listening, known)

    def note_running(self, node: Node, pids: Iterable[int]) -> None:
        """Take the NodeManager processes on a node's host: of this cluster, or of another one."""
        self._strangers[node.name] = tuple(sorted(pids))

    def unmatched(self, nodes: Iterable[Node]) -> str:
        """That a NodeManager runs on a host of which the ResourceManager seems to list none, and what to configure."""
        found = [(node.name, self._strangers.get(node.name, ())) for node in nodes if not self.of(node)]
        return "; ".join(
            f"a NodeManager runs on {name} (process {', '.join(map(str, pids))}), but no node of this ResourceManager"
            " has a name or address of this host: if it belongs to this cluster, add the host part of its node id to"
            " node.addresses in the core file, or set spec.nodeManagers to its id"
            for name, pids in found
            if pids
        )
