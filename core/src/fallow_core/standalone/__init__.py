"""`fallow run`: controller and node observation in one process on one host, without Kubernetes.

`process` is the loop, `control` the private socket, `view` what it shows, `metrics` the same for Prometheus, `doctor`
what an operator should know, `restore` puts sizes back. One thread owns all state; the others ask it.
"""
