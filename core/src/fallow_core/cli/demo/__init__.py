"""`fallow demo`: a small resource manager on this host, real batch tasks, a real load, and Fallow between them.

`framework` is the interface that a plugin implements, `load` and `task` are the processes that use CPU, `phases` says
when the load rises and falls, `stage` starts and ends everything, `show` is the view, `summary` the text at the end.
The demo changes nothing outside its own folder and processes, and removes both.
"""
