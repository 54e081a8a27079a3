"""A cluster's Hadoop configuration as its users have it: core-site.xml and yarn-site.xml of a folder.

`files` reads the properties with their includes, variables and final ones; `managers` says what they mean for this
plugin. Nothing here talks to a server, and nothing is guessed: what is not in the files has Hadoop's own default.
"""

from fallow_yarn.hadoop_conf.files import HadoopConfError, Properties, read_folder
from fallow_yarn.hadoop_conf.managers import PREFIX, is_by_host_name, resource_managers

__all__ = ["PREFIX", "HadoopConfError", "Properties", "is_by_host_name", "read_folder", "resource_managers"]
