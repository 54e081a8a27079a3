"""Templates of the files. Each setting is commented out by a `#` alone, so that without the `#` it is valid YAML."""

from textwrap import dedent, indent

from fallow_hookspecs import Plugin

CORE_TEMPLATE = """\
# Fallow on this host. Check this file and all cluster files with: fallow config check DIRECTORY
# Settings are commented out and show the default or an example: remove the "#", and that of the key above it.
# Relative paths start at the directory of this file. Durations: 500ms, 20s, 5m, 1h30m.
apiVersion: fallow/v1
kind: Fallow

# A name for this installation. Default: none.
#metadata:
#  name: batch-host

# The directory of the cluster files: one *.yaml file for each cluster.
#clustersDir: clusters.d
# The directory of the state that survives restarts, such as switches and the original sizes.
#stateDir: /var/lib/fallow
# The socket by which fallow status, explain, switch, doctor and restore talk to the running Fallow.
#controlSocket: /run/fallow/control.sock
# A group whose users may read from the socket; only the owner and root may change anything. Default: no group.
#controlGroup: fallow

# The address of /metrics; "metrics: off" disables it.
#metrics:
#  address: 127.0.0.1
#  port: 9464

# The root of the host's file system, for a Fallow that runs in a container.
#hostRoot: /

# The name of this host and its other addresses. Default: the host name, and no other addresses.
#node:
#  name: worker-1
#  addresses: [worker-1.example.com, 192.0.2.17]
# Labels assign this host to a pool (see "pools") and to clusters (see "nodeSelector" in a cluster file).
#  labels: {pool: batch}

# How much of a node may be lent.
# watermark: online services and batch together may use this share. A host whose services use more lends nothing.
# policy: whether online pods count by usage, request, or max (the larger of both).
# reserved: the minimum for the system (cpu: 500m or 2; memory: 512Mi or 4GiB; or a share, 5%).
# reservedPerDaemon: the minimum for each NodeManager. cap: the most that is lent.
# overcommit: the share of that which is promised, for frameworks whose tasks use less than they request.
#capacity:
#  cpu:
#    watermark: 60%
#    policy: usage
#    reserved: 0
#    reservedPerDaemon: 0
#    cap: 100%
#    overcommit: 100%
#  memory:
#    watermark: 65%
#    policy: usage
#    reserved: 0
#    reservedPerDaemon: 0
#    cap: 100%
#    overcommit: 100%
# Times with another watermark or overcommit. The first window that matches is used. A window whose end is before its
# begin ends on the next day. A change starts at its time and takes as long as the ramp. Default: no schedule.
#  schedule:
#    timeZone: UTC
#    ramp: 15m
#    windows:
#      - days: [mon, tue, wed, thu, fri]
#        from: 22:00
#        to: 06:00
#        cpu: {watermark: 80%, overcommit: 100%}
#        memory: {watermark: 75%, overcommit: 100%}

# Other values for the nodes with all labels of a pool. The first pool that matches a node is used. It takes the keys of
# "capacity" above, including schedule. Default: no pools.
#pools:
#  - name: batch
#    nodeSelector: {pool: batch}
#    capacity:
#      cpu: {watermark: 80%, reserved: 5%, overcommit: 120%}
#      memory: {policy: max, reservedPerDaemon: 2GiB}
# Other values for one node, whatever its pool. Default: none.
#nodes:
#  - name: worker-7
#    capacity:
#      cpu: {watermark: 40%}

# observe: compute and show sizes, send nothing. enforce: send them.
#publishing:
#  mode: observe
# exclusive: no capacity is promised twice. shared: free capacity is promised to every cluster, nothing is taken back.
#  sharing: exclusive
# Changes of less than this share of the size are not sent.
#  deadBand: 15%
# A size grows only to the smallest target of this time.
#  growthDelay: 60s
# How often sizes are sent, and how often the framework is asked for a report.
#  interval: 5s
#  reportInterval: 10s
# The age of a measurement after which sizes stop growing, and the age after which the node drains.
#  degradeAfter: 60s
#  withdrawAfter: 15m
# A size without a visible effect after this time counts as carried out.
#  inFlight: 60s

# If draining is too slow, the framework's own scheduler can be told to terminate tasks above an offer.
# observe: only show it. enforce: do it. after: how long memory is above the offer. notice: how long tasks are warned
# before they are terminated, while the node goes on draining: 60s to 1h.
#takeBack:
#  mode: observe
#  after: 60s
#  notice: 60s
# Take back at most this share of a cluster's allocation (or one largest task) within the window.
#  blastRadius: 5%
#  blastWindow: 10m

# Protection of this host: batch is throttled first, then tasks are terminated. Each strategy: off, observe (only show
# what it would do), enforce.
#qos:
# Control groups in which nothing is changed, from the cgroup root: these, those below, and those above, as a limit of a
# group holds for all groups in it.
#  exempt: []
# Limit the CPU of batch to what other work leaves of the CPU watermark, but not below minimum. The limit grows by at
# most step a second. cpuset also restricts batch to a number of CPUs, whole cores first: spread over the NUMA zones, or
# packed into few of them. CPUs that a group uses exclusively are left out.
#  cpuSuppress:
#    mode: observe
#    minimum: 2%
#    step: 10%
#    cpuset: off
# Give control groups of batch the smallest CPU weight, and move tasks without a group into a new one. A memoryLimit
# such as 120% limits the memory of these groups to that share of the requests of their tasks.
#  cgroupReconcile:
#    mode: observe
#    memoryLimit: off
# Give control groups of batch the scheduling class that runs only on idle CPUs, if the kernel has one.
#  identity:
#    mode: observe
# If a task of an online group waits for memory during threshold of the time, reduce the CPU of batch by a step each
# second, until all wait less than lowerThreshold. groups: those of online services, such as system.slice/web.
#  onlinePressure:
#    mode: observe
#    groups: []
#    threshold: 10%
#    lowerThreshold: 5%
# If memory in use reaches threshold, reclaim cold memory of batch: at most step of the node each coolDown. While that
# helps, no task is terminated for memory within window, unless use reaches criticalThreshold. The same applies in every
# mode after a start.
#  memoryReclaim:
#    mode: observe
#    threshold: 85%
#    step: 1%
#    coolDown: 1s
#    window: 5s
#    criticalThreshold: 95%
# If memory in use reaches threshold, terminate tasks until it would be lowerThreshold.
#  memoryEvict:
#    mode: observe
#    threshold: 90%
#    lowerThreshold: 85%
#    coolDown: 4s
# If batch gets less than "satisfaction" of the CPU that its tasks requested, and uses more than "usage" of that,
# for "window" and in at least "samples" measurements, terminate tasks until the others would get "until".
#  cpuEvict:
#    mode: observe
#    satisfaction: 60%
#    until: 70%
#    usage: 80%
#    window: 60s
#    samples: 6
#    coolDown: 20s
# Batch may be slow for any time: never terminate tasks for CPU.
#    slowIsFine: false
# If more memory is allocated than can be lent and the framework does not take it back, terminate tasks.
#  overdraftEvict:
#    mode: observe
#    after: 2m
#    coolDown: 20s
# grace: time for a task to stop by itself before it is killed. margin: time for its memory to be free after that.
# backOff: pause before another attempt on a task that could not be terminated. budget: after this number of
# terminations of an application in budgetWindow, tasks of other applications are preferred.
#  termination:
#    grace: 30s
#    margin: 10s
#    backOff: 60s
#    budget: 2
#    budgetWindow: 1h
# Whether an orderly stop keeps limits and weights (keep), or restores them (release).
#  onExit: keep

# How often this host is measured.
#sampleInterval: 1s
# The sizes that an orderly stop leaves behind: keep (the last ones), floor (the smallest), original (those before).
#onExit: floor
#log:
# debug, info, warning or error.
#  level: info
"""

_CLUSTER = """\
# One batch cluster. Check it together with the core file: fallow config check DIRECTORY
# Settings are commented out and show the default or an example: remove the "#", and that of the key above it.
apiVersion: fallow/v1
kind: Cluster
metadata:
  # The name of the cluster: lower-case letters, digits and "-". No other cluster of this plugin may have it.
  name: {name}
plugin: {plugin}

# controller: report and publish sizes; agent: list and terminate tasks on this host.
#roles: [controller, agent]
# Its weight against other clusters if capacity is short, 1 to 1000.
#weight: 1
# The most that it gets: an amount, or a share of the capacity that can be lent. Default: no limit.
#limit:
#  cpu: 80%
#  memory: 100GiB
# Whether its scheduler may be told to terminate tasks, if that counts as no failure: allowed or never.
#takeBack: allowed
# If no node would be as large as its largest task, which it would then refuse: warn, or keep one node at that size.
#keepLargest: warn
# Only hosts with these labels (node.labels in fallow.yaml) lend to it. Default: all hosts.
#nodeSelector:
#  pool: batch

# Third-party code around its calls, the outermost first. It can watch, and veto the termination of a task.
#wrappers: [audit]

# Settings of the plugin {plugin}.
spec:
"""


def cluster_template(plugin: Plugin) -> str:
    """A cluster file for this plugin: the settings of core with their defaults, and the plugin's own example."""
    head = _CLUSTER.format(name=plugin.name.replace("_", "-"), plugin=plugin.name)
    return head + indent(dedent(plugin.config_template).strip("\n") + "\n", "  ")
