"""What a cluster file and Hadoop's own files configure.

`config` is the model of the cluster file; `agent_model` makes `agent_settings` of it, which is all that an agent keeps.
`hadoop_conf` reads Hadoop's files, `rm_addresses` and `security` say what both mean, and `setting_sources` lists every
value with its source. Nothing here talks to a server or guesses: what is not configured has Hadoop's own default.
"""
