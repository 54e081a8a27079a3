"""Decommissions and recommissions nodes, through the ResourceManager's lists of excluded and included hosts.

`host_list` and `xml_list` edit the content of such a file, `list_file` is the file itself, and `lists` are the files of
one cluster. `decommissioning` and `recommissioning` are the two procedures, `command` has the commands around them, and
`when_empty` removes empty nodes (`removed_nodes` remembers which).
Nothing here terminates a task or lends capacity: the ResourceManager ends what is left when the grace is over.
"""
