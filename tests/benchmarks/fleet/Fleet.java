import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.ResourceUtilization;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.api.ResourceTracker;
import org.apache.hadoop.yarn.server.api.ServerRMProxy;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatResponse;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.records.MasterKey;
import org.apache.hadoop.yarn.server.api.records.NodeAction;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.util.YarnVersionInfo;

/**
 * NodeManagers without nodes, for a real ResourceManager: they register, send heartbeats as often as they are told to,
 * and say that the containers run that the scheduler placed on them. An application of this process asks for those.
 *
 * <p>Fleet NODES MEMORY_MB VCORES CONTAINERS CONTAINER_MB. It ends when its standard input does. With Kerberos,
 * -Dfleet.principal and -Dfleet.keytab say who registers, and CONTAINERS is 0.
 */
public final class Fleet {
    private static final int USERS = 8; // a connection each
    private static final int THREADS = 16;
    private static final int PORT = 45454;
    private static final String KEYTAB = System.getProperty("fleet.keytab"); // none: the ResourceManager believes names

    private final Configuration conf = new YarnConfiguration();
    private final ScheduledExecutorService threads = Executors.newScheduledThreadPool(THREADS);
    private final Map<NodeId, FakeNode> nodes = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        int[] numbers = new int[args.length];
        for (int i = 0; i < args.length; i++) {
            numbers[i] = Integer.parseInt(args[i]);
        }
        Fleet fleet = new Fleet();
        fleet.register(numbers[0], Resource.newInstance(numbers[1], numbers[2]));
        System.out.println("registered " + numbers[0]);
        if (numbers[3] > 0) {
            fleet.hold(numbers[3], Resource.newInstance(numbers[4], 1));
        }
        while (System.in.read() >= 0) {
            // nobody writes anything that matters
        }
        Runtime.getRuntime().halt(0);
    }

    private void register(int count, Resource size) throws Exception {
        List<ResourceTracker> trackers = new ArrayList<>();
        for (int i = 0; i < USERS; i++) {
            UserGroupInformation user = KEYTAB == null ? UserGroupInformation.createRemoteUser("fleet" + i)
                : UserGroupInformation.loginUserFromKeytabAndReturnUGI(System.getProperty("fleet.principal"), KEYTAB);
            trackers.add(user.doAs((PrivilegedExceptionAction<ResourceTracker>)
                () -> ServerRMProxy.createRMProxy(conf, ResourceTracker.class)));
        }
        List<Callable<Void>> registrations = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            // an address of loopback each: it is no name that somebody has to look up
            String address = String.format("127.%d.%d.%d", 1 + i / 40000, i / 200 % 200, 1 + i % 200);
            FakeNode node = new FakeNode(NodeId.newInstance(address, PORT), trackers.get(i % USERS), size);
            nodes.put(node.id, node);
            registrations.add(node::register);
        }
        for (Future<Void> registration : threads.invokeAll(registrations)) {
            registration.get();
        }
        for (FakeNode node : nodes.values()) {
            node.beatAfter(ThreadLocalRandom.current().nextLong(node.intervalMs()));
        }
    }

    /** Submits an application whose master is this process, and asks once for so many containers anywhere. */
    private void hold(int count, Resource size) throws Exception {
        YarnClient client = YarnClient.createYarnClient();
        client.init(conf);
        client.start();
        ApplicationSubmissionContext context = client.createApplication().getApplicationSubmissionContext();
        ApplicationId id = context.getApplicationId();
        context.setApplicationName("fleet");
        context.setQueue("default");
        context.setUnmanagedAM(true);
        context.setResource(size);
        context.setAMContainerSpec(ContainerLaunchContext.newInstance(null, null, null, null, null, null));
        client.submitApplication(context);
        while (client.getAMRMToken(id) == null) {
            Thread.sleep(100);
        }
        UserGroupInformation user = UserGroupInformation.createRemoteUser(UserGroupInformation.getCurrentUser().getUserName());
        user.addToken(client.getAMRMToken(id));
        ApplicationMasterProtocol master = user.doAs((PrivilegedExceptionAction<ApplicationMasterProtocol>)
            () -> ClientRMProxy.createRMProxy(conf, ApplicationMasterProtocol.class));
        master.registerApplicationMaster(RegisterApplicationMasterRequest.newInstance("127.0.0.1", 0, ""));
        List<ResourceRequest> asks = new ArrayList<>();
        asks.add(ResourceRequest.newInstance(Priority.newInstance(1), ResourceRequest.ANY, size, count));
        int response = 0;
        for (int held = 0; held < count; Thread.sleep(500)) {
            AllocateResponse answer = master.allocate(AllocateRequest.newInstance(response, 0, asks, List.of(), null));
            response = answer.getResponseId();
            asks.clear();
            for (Container container : answer.getAllocatedContainers()) {
                nodes.get(container.getNodeId()).run(container.getId());
                held++;
            }
        }
        System.out.println("holds " + count);
        int last = response;
        threads.scheduleWithFixedDelay(new Runnable() {
            private int next = last;

            @Override
            public void run() {
                try {
                    next = master.allocate(AllocateRequest.newInstance(next, 0, List.of(), List.of(), null)).getResponseId();
                } catch (Exception error) {
                    System.out.println("the master: " + error);
                }
            }
        }, 10, 10, TimeUnit.SECONDS);
    }

    private final class FakeNode {
        private final NodeId id;
        private final ResourceTracker tracker;
        private final Map<ContainerId, ContainerStatus> containers = new HashMap<>();
        private Resource size;
        private MasterKey containerKey;
        private MasterKey tokenKey;
        private int response;

        FakeNode(NodeId id, ResourceTracker tracker, Resource size) {
            this.id = id;
            this.tracker = tracker;
            this.size = size;
        }

        long intervalMs() {
            return conf.getLong(YarnConfiguration.RM_NM_HEARTBEAT_INTERVAL_MS, 1000);
        }

        Void register() throws Exception {
            RegisterNodeManagerResponse answer = tracker.registerNodeManager(RegisterNodeManagerRequest.newInstance(
                id, 8042, size, YarnVersionInfo.getVersion(), List.of(), List.of(), null));
            if (answer.getNodeAction() == NodeAction.SHUTDOWN) {
                throw new IllegalStateException(id + " was refused: " + answer.getDiagnosticsMessage());
            }
            containerKey = answer.getContainerTokenMasterKey();
            tokenKey = answer.getNMTokenMasterKey();
            response = 0;
            return null;
        }

        synchronized void run(ContainerId container) {
            containers.put(container, ContainerStatus.newInstance(container, ContainerState.RUNNING, "", -1000));
        }

        void beatAfter(long ms) {
            threads.schedule(this::beat, ms, TimeUnit.MILLISECONDS);
        }

        private void beat() {
            long next = intervalMs();
            try {
                next = Math.max(beatOnce(), 100);
            } catch (Exception error) {
                System.out.println(id + ": " + error);
            }
            beatAfter(next);
        }

        /** Reports, follows what the answer says, and returns when to report again. */
        private synchronized long beatOnce() throws Exception {
            ResourceUtilization used = ResourceUtilization.newInstance((int) size.getMemorySize() / 2, 0, 2f);
            NodeStatus status = NodeStatus.newInstance(id, response, new ArrayList<>(containers.values()), List.of(),
                NodeHealthStatus.newInstance(true, "", System.currentTimeMillis()), used, used, List.of());
            containers.values().removeIf(container -> container.getState() == ContainerState.COMPLETE);
            NodeHeartbeatResponse answer =
                tracker.nodeHeartbeat(NodeHeartbeatRequest.newInstance(status, containerKey, tokenKey, null));
            if (answer.getNodeAction() == NodeAction.RESYNC) {
                register();
                return intervalMs();
            }
            response = answer.getResponseId();
            containerKey = answer.getContainerTokenMasterKey() == null ? containerKey : answer.getContainerTokenMasterKey();
            tokenKey = answer.getNMTokenMasterKey() == null ? tokenKey : answer.getNMTokenMasterKey();
            size = answer.getResource() == null ? size : answer.getResource();
            for (ContainerId ended : answer.getContainersToCleanup()) {
                containers.computeIfPresent(ended, (key, before) ->
                    ContainerStatus.newInstance(key, ContainerState.COMPLETE, "ended by the ResourceManager", -106));
            }
            return answer.getNextHeartBeatInterval();
        }
    }
}
