"""What a running Fallow shows and what it can be asked: views, metrics, requests, the control socket.

Commands and later a console read it. It changes nothing by itself: a request goes to the process that owns the state.
"""
