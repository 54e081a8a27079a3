"""`fallow run`: controller and node observation in one process on one host, without Kubernetes.

`process` is the loop; `builds` makes its plugin instances, `reloading` follows the files, `inbox` is how other threads
reach it. `control` is the private socket, `requests` what may be asked there, `view` what is shown, `metrics` the same
for Prometheus, `squeezing` slows batch down, `doctor` says what an operator should know, `restore` puts sizes and
control groups back. One thread owns all state; the others ask it.
"""
