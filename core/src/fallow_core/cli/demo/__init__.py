"""`fallow demo`: a small resource manager on this host, real batch tasks, a real load, and Fallow between them.

`framework` is what a plugin has to bring for it, `load` and `task` are the processes that use CPU, `phases` says when
the load rises and falls, `stage` sets all of it up and takes it down, `summary` is what is said in the end. It must
change nothing outside its own folder and processes, and leave neither behind.
"""
