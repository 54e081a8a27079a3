"""Taking nodes out of a cluster and back in, through the ResourceManager's lists of excluded and included hosts.

`host_list` and `xml_list` are what stands in such a file, `list_file` is the file itself, and `lists` those of one
cluster. `decommissioning` and `recommissioning` are the two procedures, `command` has the commands around them, and
`when_empty` what is done for empty nodes (`parked` are those that are out).
Nothing here changes the size of a node or ends a task by itself: that is the ResourceManager's.
"""
