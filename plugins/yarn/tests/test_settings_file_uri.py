import pytest

from fallow_yarn.settings.file_uri import local_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/data/a b", "/data/a b"),
        ("more.xml", "more.xml"),
        ("./more:x.xml", "./more:x.xml"),
        ("file:/data/a%20b", "/data/a b"),
        ("file:///data", "/data"),
        ("file://localhost/data", "/data"),
        ("FILE:/data", "/data"),
        ("", ""),
    ],
)
def test_a_file_of_this_host_is_a_path_or_a_uri(text: str, path: str) -> None:
    assert local_path(text) == path


@pytest.mark.parametrize("text", ["file:", "file:/", "file:data", "file://data", "file://host/data", "hdfs:/data"])
def test_what_is_no_file_of_this_host_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected a path, or a URI such as file:/etc/hadoop"):
        local_path(text)
