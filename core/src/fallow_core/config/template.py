"""Files to start from: every setting commented out by a `#` alone, so that taking it away leaves valid YAML."""

from textwrap import dedent, indent

from fallow_hookspecs import Plugin

CORE_TEMPLATE = """\
# Fallow on this host. Check this file and all cluster files with: fallow config check DIRECTORY
# Settings are commented out, with their default or an example: take away the "#", and that of the key above it.
# Relative paths count from the directory of this file. Durations: 500ms, 20s, 5m, 1h30m.
apiVersion: fallow/v1
kind: Fallow

# A name of your own for this installation. Default: none.
#metadata:
#  name: batch-host

# Where the cluster files are: one *.yaml file for each cluster.
#clustersDir: clusters.d
# Where switches and the sizes found first are kept over restarts.
#stateDir: /var/lib/fallow
# Where fallow status, explain, switch, doctor and restore reach the running Fallow.
#controlSocket: /run/fallow/control.sock
# The group that may read there; switching stays with the owner and root. Default: no group.
#controlGroup: fallow

# Where /metrics is served; "metrics: off" serves none.
#metrics:
#  address: 127.0.0.1
#  port: 9464

# Where the host's file system is, for a Fallow that runs in a container.
#hostRoot: /

# Who this host is. Default: its own host name, and no addresses besides its own.
#node:
#  name: worker-1
#  addresses: [worker-1.example.com, 192.0.2.17]
# By its labels it belongs to a pool.
#  labels: {pool: batch}

# How much of a node may be lent. watermark: the share that online services and batch may use together;
# policy: whether online pods count by usage, request, or max (the larger of both);
# reserved: the least that is kept for the system (cpu: 500m or 2; memory: 512Mi or 4GiB; or a share, 5%);
# reservedPerDaemon: the least that is kept for each NodeManager; cap: the most that is lent;
# overcommit: what is promised of that, for frameworks whose tasks use less than they ask for.
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
# When watermark or overcommit are different: in windows, of which the first one counts. One that ends before it begins
# ends on the next day. A change begins at its time and takes the time of the ramp. Default: no schedule.
#  schedule:
#    timeZone: UTC
#    ramp: 15m
#    windows:
#      - days: [mon, tue, wed, thu, fri]
#        from: 22:00
#        to: 06:00
#        cpu: {watermark: 80%, overcommit: 100%}
#        memory: {watermark: 75%, overcommit: 100%}

# What is different for the nodes that have all the labels of a pool. The first pool of a node counts. It takes the keys
# of "capacity" above, its schedule too. Default: no pools.
#pools:
#  - name: batch
#    nodeSelector: {pool: batch}
#    capacity:
#      cpu: {watermark: 80%, reserved: 5%, overcommit: 120%}
#      memory: {policy: max, reservedPerDaemon: 2GiB}
# What is different for one node, whatever its pool. Default: nothing.
#nodes:
#  - name: worker-7
#    capacity:
#      cpu: {watermark: 40%}

# observe: compute and show everything, send nothing. enforce: send it.
#publishing:
#  mode: observe
# exclusive: no capacity is promised twice. shared: what is free is promised to every cluster, nothing is taken back.
#  sharing: exclusive
# A change of less than this share of the size is not sent.
#  deadBand: 15%
# Growth goes to the smallest target of this time.
#  growthDelay: 60s
# How often sizes are sent, and how often the framework is asked.
#  interval: 5s
#  reportInterval: 10s
# Ages of a measurement after which nothing grows, and after which the node drains.
#  degradeAfter: 60s
#  withdrawAfter: 15m
# A size without effect for so long is taken for carried out.
#  inFlight: 60s

# When draining is too slow, the framework's own scheduler may be told to end what is above an offer.
# observe: show it. enforce: do it. after: how long memory has to be above; notice: from then to the end of tasks.
#takeBack:
#  mode: observe
#  after: 60s
#  notice: 60s
# At most this share of a cluster's allocation (or one largest task) in that time.
#  blastRadius: 5%
#  blastWindow: 10m

# Protecting this host: batch is slowed down first, then tasks are terminated. Each strategy: off, observe (say what
# it would do), enforce.
#qos:
# Control groups of batch get a CPU limit: what all else leaves of the CPU watermark, but no less than minimum. It grows
# by at most step a second. With cpuset batch is besides kept on as many CPUs, whole cores first: spread over the NUMA
# zones, or packed into as few as will do; CPUs that somebody has alone are left out.
#  cpuSuppress:
#    mode: observe
#    minimum: 2%
#    step: 10%
#    cpuset: off
# Control groups of batch get the smallest CPU weight; tasks that have no group of their own are put into one. With a
# memoryLimit such as 120% groups, and tasks in groups that were made, use no more memory than that of their requests.
#  cgroupReconcile:
#    mode: observe
#    memoryLimit: off
# Control groups of batch get the scheduling class that runs only when nobody else wants to, where the kernel has one.
#  identity:
#    mode: observe
# Some task of an online group waits for memory for threshold of the time: batch gets a step less CPU each second than
# it uses, until all wait less than lowerThreshold. groups: those of online services, such as system.slice/web.
#  onlinePressure:
#    mode: observe
#    groups: []
#    threshold: 10%
#    lowerThreshold: 5%
# Memory in use reaches threshold: push cold memory of batch out, at most step of the node each coolDown. For a window
# nothing ends for memory while that can bring something, unless use reaches criticalThreshold.
#  memoryReclaim:
#    mode: observe
#    threshold: 85%
#    step: 1%
#    coolDown: 1s
#    window: 5s
#    criticalThreshold: 95%
# Memory in use reaches threshold: terminate tasks until it would be lowerThreshold.
#  memoryEvict:
#    mode: observe
#    threshold: 90%
#    lowerThreshold: 85%
#    coolDown: 4s
# Batch may use less than "satisfaction" of the CPU its tasks requested and uses more than "usage" of that, for
# "window" and in at least "samples" measurements: terminate tasks until the rest would have "until".
#  cpuEvict:
#    mode: observe
#    satisfaction: 60%
#    until: 70%
#    usage: 80%
#    window: 60s
#    samples: 6
#    coolDown: 20s
# Batch may be slow for as long as it takes: end nothing for CPU.
#    slowIsFine: false
# More memory is allocated than can be lent, and the framework did not take it back: terminate tasks.
#  overdraftEvict:
#    mode: observe
#    after: 2m
#    coolDown: 20s
# The grace before a task is forced, the margin after it, how long one that cannot be terminated is left alone, and how
# many terminations an application gets in that window before it is spared as long as others suffice.
#  termination:
#    grace: 30s
#    margin: 10s
#    backOff: 60s
#    budget: 2
#    budgetWindow: 1h
# Whether an orderly stop leaves limits and weights in force (keep), or puts them back as they were (release).
#  onExit: keep

# How often this host is measured.
#sampleInterval: 1s
# Which sizes an orderly stop leaves behind: keep (the newest), floor (the smallest), original (those found first).
#onExit: floor
#log:
# debug, info, warning or error.
#  level: info
"""

_CLUSTER = """\
# One batch cluster. Check it together with the core file: fallow config check DIRECTORY
# Settings are commented out, with their default or an example: take away the "#", and that of the key above it.
apiVersion: fallow/v1
kind: Cluster
metadata:
  # The name of the cluster: lower-case letters, digits and "-". No other cluster of this plugin may have it.
  name: {name}
plugin: {plugin}

# controller: report and publish sizes; agent: list and terminate tasks on this host.
#roles: [controller, agent]
# Its weight against other clusters where capacity is short, 1 to 1000.
#weight: 1
# The most that it gets: an amount, or a share of what can be lent. Default: no limit.
#limit:
#  cpu: 80%
#  memory: 100GiB
# Whether its scheduler may be told to end work where that charges no application: allowed or never.
#takeBack: allowed
# Before no node is as large as its largest task, which it would then refuse: warn, or keep one node at that size.
#keepLargest: warn
# Labels of the nodes that it may use. Default: all nodes.
#nodeSelector:
#  pool: batch

# Code of third parties around its calls, the outermost first: it may look on, and veto the end of a task.
#wrappers: [audit]

# Settings of the plugin {plugin}.
spec:
"""


def cluster_template(plugin: Plugin) -> str:
    """A cluster file for this plugin: every setting of core with its default, then the plugin's own example."""
    head = _CLUSTER.format(name=plugin.name.replace("_", "-"), plugin=plugin.name)
    return head + indent(dedent(plugin.config_template).strip("\n") + "\n", "  ")
