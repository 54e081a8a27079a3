"""What core and the YARN plugin have to agree on: the check of a cluster file, and the notation of durations."""

import re
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.cli import main as cli
from fallow_core.model.quantities import duration_seconds
from fallow_yarn.lifecycle.duration import seconds

CORE = "apiVersion: fallow/v1\nkind: Fallow\n"
CLUSTER = """\
apiVersion: fallow/v1
kind: Cluster
metadata: {name: etl}
plugin: yarn
spec:
  hadoopConfDir: FOLDER
"""
PARTS = st.lists(st.sampled_from(["1", "20", "h", "m", "s", "ms", "d", " ", ".", "-"]), max_size=6).map("".join)


@pytest.mark.parametrize("exists", [False, True])
def test_config_check_reports_hadoops_files_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, exists: bool
) -> None:
    folder = tmp_path / "conf"
    if exists:
        folder.mkdir()
        (folder / "yarn-site.xml").write_text("<configuration/>")
    (tmp_path / "fallow.yaml").write_text(CORE)
    clusters = tmp_path / "clusters.d"
    clusters.mkdir()
    (clusters / "etl.yaml").write_text(CLUSTER.replace("FOLDER", str(folder)))
    assert cli.main(["config", "check", str(tmp_path)]) == (0 if exists else 2)
    said = capsys.readouterr()
    if not exists:
        assert re.search(
            rf"etl\.yaml:6: spec\.hadoopConfDir: .*{folder}: there is no such directory", said.out + said.err
        )


@given(PARTS)
def test_a_grace_on_the_command_line_is_a_duration_of_the_config(text: str) -> None:
    context, option = click.Context(click.Command("decommission")), click.Option(["--grace"])
    try:
        expected = duration_seconds(text)
    except ValueError:
        with pytest.raises(click.BadParameter):
            seconds(context, option, text)
    else:
        assert 0 <= seconds(context, option, text) - expected < 1
