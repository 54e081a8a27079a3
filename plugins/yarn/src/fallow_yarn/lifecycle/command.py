"""`fallow yarn decommission` and `fallow yarn recommission`."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import click

from fallow_hookspecs import CommandHost
from fallow_yarn.errors import YarnError
from fallow_yarn.lifecycle.decommissioning import CALL_SECONDS, Decommissioning, Progress, soon
from fallow_yarn.lifecycle.duration import seconds
from fallow_yarn.lifecycle.host_lookup import hosts_of
from fallow_yarn.lifecycle.list_file import ListFileError
from fallow_yarn.lifecycle.lists import HostLists, lists_of
from fallow_yarn.lifecycle.recommissioning import recommission as recommission_hosts
from fallow_yarn.rm.connect import Shared, resource_manager
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.nodes import ACTIVE, State
from fallow_yarn.security.access import access
from fallow_yarn.settings.agent_settings import AgentSettings
from fallow_yarn.settings.config import YarnSpec, spec_of
from fallow_yarn.settings.hadoop_conf import HadoopConfError
from fallow_yarn.settings.rm_addresses import rm_addresses

POLL_SECONDS: Final = 1.0
LINE_SECONDS: Final = 30.0  # at least one line of progress in this time
SLACK_SECONDS: Final = 60.0  # a ResourceManager looks at graces every 20 s
INTERRUPTED: Final = 130


def commands(host: CommandHost) -> click.Group:
    """The group `yarn`."""

    @click.group("yarn")
    def yarn() -> None:
        """Decommission and recommission YARN nodes."""

    cluster_option = click.option("--cluster", metavar="NAME", help="The cluster; required if there are several.")
    config_option = click.option(
        "--config", "-c", "config", type=click.Path(path_type=Path, readable=False), help="As of the other commands."
    )

    @yarn.command()
    @click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
    @cluster_option
    @click.option(
        "--grace",
        metavar="TIME",
        callback=seconds,
        default="10m",
        show_default=True,
        help="How long running tasks may continue.",
    )
    @click.option("--force", is_flag=True, help="No grace: terminate running tasks now.")
    @config_option
    def decommission(nodes: tuple[str, ...], cluster: str | None, grace: int, force: bool, config: Path | None) -> int:
        """Decommission nodes, named by id or host, with all NodeManagers of each host.

        No new task starts there. When the grace is over, the ResourceManager terminates the remaining tasks, and the
        NodeManager exits. The command shows the progress until then; Ctrl-C stops only the command. A ResourceManager
        that becomes active in the meantime is told too.
        """
        with _managed(host.cluster(cluster, config).spec) as (manager, lists), lists.locked():
            hosts = hosts_of(nodes, manager.nodes(soon()))
            return _decommission(Decommissioning(manager, lists, hosts, 0 if force else grace, time.monotonic), hosts)

    @yarn.command()
    @click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
    @cluster_option
    @config_option
    def recommission(nodes: tuple[str, ...], cluster: str | None, config: Path | None) -> None:
        """Recommission nodes, or stop decommissioning them. Running tasks continue."""
        with _managed(host.cluster(cluster, config).spec) as (manager, lists), lists.locked():
            listed = [name for file in lists.excludes for name in file.hosts()]
            hosts = hosts_of(nodes, manager.nodes(soon()), listed)
            recommission_hosts(manager, lists, hosts)
            _show_back(manager, hosts)

    return yarn


@contextmanager
def _managed(settings: YarnSpec | AgentSettings) -> Iterator[tuple[Manager, HostLists]]:
    """The cluster's ResourceManager and lists; shows the user an error of either."""
    try:
        spec = spec_of(settings)
        manager = resource_manager(rm_addresses(spec), Shared(access(spec)))
        try:
            yield manager, lists_of(spec)
        finally:
            manager.close()
    except (YarnError, ListFileError, HadoopConfError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _decommission(decommissioning: Decommissioning, hosts: list[str]) -> int:
    names = " ".join(hosts)
    with _sigterm_as_ctrl_c():
        try:
            decommissioning.begin()
        except KeyboardInterrupt:
            click.echo(f"interrupted; the exclude files are as before, and {names} may be draining:")
            click.echo(
                f"  fallow yarn decommission {names}    to continue\n  fallow yarn recommission {names}    to undo it"
            )
            return INTERRUPTED
        try:
            done = _follow(decommissioning)
        except KeyboardInterrupt:
            _finish_without_rm(decommissioning)
            click.echo(f"{names}: the decommissioning continues without this command.")
            click.echo("A failover during the grace would terminate running tasks at once; to prevent that:")
            click.echo(f"  fallow yarn decommission {names}\nto undo it:\n  fallow yarn recommission {names}")
            return INTERRUPTED
    decommissioning.finish()
    if done:
        click.echo(f"{names}: decommissioned. To undo it: fallow yarn recommission {names}")
        return 0
    click.echo(
        f"{names}: the grace is over, but it is not decommissioned; use --force to do so now",
        err=True,
    )
    return 1


def _finish_without_rm(decommissioning: Decommissioning) -> None:
    """Write the files even if the ResourceManager does not answer."""
    try:
        decommissioning.finish()
    except YarnError as error:
        click.echo(f"the exclude files are written, but the ResourceManager was not told: {error}", err=True)


def _follow(decommissioning: Decommissioning) -> bool:
    """Show progress; whether it is done, rather than late."""
    shown, shown_at = "", 0.0
    while True:
        progress = decommissioning.poll()
        line = _line(progress)
        now = time.monotonic()
        if line != shown or now - shown_at >= LINE_SECONDS:
            left = f"; {progress.left_seconds:.0f} s of the grace left" if progress.left_seconds > 0 else ""
            click.echo(line + left)
            shown, shown_at = line, now
        if progress.done or progress.left_seconds < -SLACK_SECONDS:
            return progress.done
        time.sleep(POLL_SECONDS)


def _line(progress: Progress) -> str:
    if progress.unreachable:
        return f"no answer: {progress.unreachable}"
    if not progress.nodes:
        return "not registered with the active ResourceManager"
    again = "in use again, as after a failover, and told again: " if progress.told_again else ""
    nodes = (
        f"{node.node_id} {node.state}, {node.containers} containers with {node.used.memory_mb} MB"
        f" and {node.used.vcores} vcores"
        for node in progress.nodes
    )
    return again + "; ".join(nodes)


def _show_back(manager: Manager, hosts: list[str]) -> None:
    end = time.monotonic() + CALL_SECONDS
    while True:
        nodes = [node for node in manager.nodes(soon()) if node.host in hosts]
        if all(node.state is not State.DECOMMISSIONING for node in nodes) or time.monotonic() > end:
            break
        time.sleep(POLL_SECONDS / 4)
    for node in nodes:
        click.echo(f"{node.node_id}: {node.state}")
    absent = set(hosts) - {node.host for node in nodes if node.state in ACTIVE}
    for host in sorted(absent):
        click.echo(f"{host}: may register again; start its NodeManager")


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before: Callable[[int, FrameType | None], object] | int | None = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
