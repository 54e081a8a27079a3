import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.HashSet;
import java.util.Locale;
import java.util.Queue;
import java.util.Set;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.PreemptionContainer;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.ApplicationAttemptNotFoundException;

/**
 * An application master that runs one shell command in each of its containers and notes what it is told:
 * SleepAM EVENTS_FILE CONTAINERS AT_ONCE MEMORY_MB VCORES COMMAND. It never asks for more than AT_ONCE containers, those
 * that run included, and finishes when all containers have ended.
 *
 * <p>One line an event: seconds since the epoch, kind, subject, details, each separated by one space.
 */
public final class SleepAM {
    private final Path events;
    private final ContainerLaunchContext launch;
    private final AMRMClient<ContainerRequest> rm = AMRMClient.createAMRMClient();
    private final NMClient nm = NMClient.createNMClient();
    private final Queue<ContainerRequest> open = new ArrayDeque<>();
    private final Set<ContainerId> running = new HashSet<>();

    private SleepAM(Path events, String command) {
        this.events = events;
        this.launch = ContainerLaunchContext.newInstance(null, null, Collections.singletonList(command), null, null, null);
    }

    public static void main(String[] args) throws Exception {
        Resource size = Resource.newInstance(Integer.parseInt(args[3]), Integer.parseInt(args[4]));
        new SleepAM(Path.of(args[0]), args[5]).run(Integer.parseInt(args[1]), Integer.parseInt(args[2]), size);
        System.exit(0);  // the clients' threads would go on
    }

    private void run(int wanted, int atOnce, Resource size) throws Exception {
        YarnConfiguration conf = new YarnConfiguration();
        rm.init(conf);
        rm.start();
        nm.cleanupRunningContainersOnStop(false);
        nm.init(conf);
        nm.start();
        rm.registerApplicationMaster("127.0.0.1", 0, "");
        note("registered", System.getenv("CONTAINER_ID"), "");
        int left = wanted;
        while (left > 0 || !open.isEmpty() || !running.isEmpty()) {
            for (; left > 0 && open.size() + running.size() < atOnce; left--) {
                ContainerRequest request = new ContainerRequest(size, null, null, Priority.newInstance(1));
                open.add(request);
                rm.addContainerRequest(request);
            }
            try {
                AllocateResponse told = rm.allocate(0.5f);
                start(told);
                noteWhatHappened(told);
            } catch (ApplicationAttemptNotFoundException over) {
                note("error", "-", over);
                return;
            } catch (Exception e) {
                note("error", "-", e);
            }
            Thread.sleep(200);
        }
        rm.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
        note("finished", "-", "");
    }

    private void start(AllocateResponse told) throws IOException {
        for (Container c : told.getAllocatedContainers()) {
            if (open.isEmpty()) {  // given before the scheduler heard that no more are wanted
                rm.releaseAssignedContainer(c.getId());
                continue;
            }
            rm.removeContainerRequest(open.remove());
            try {
                nm.startContainer(c, launch);
                running.add(c.getId());
                note("started", c.getId(), c.getNodeId());
            } catch (Exception e) {
                note("error", c.getId(), e);
            }
        }
    }

    private void noteWhatHappened(AllocateResponse told) throws IOException {
        for (ContainerStatus s : told.getCompletedContainersStatuses()) {
            if (running.remove(s.getContainerId())) {
                note("ended", s.getContainerId(), s.getExitStatus() + " " + s.getDiagnostics());
            }
        }
        PreemptionMessage warning = told.getPreemptionMessage();
        if (warning != null && warning.getStrictContract() != null) {
            for (PreemptionContainer c : warning.getStrictContract().getContainers()) {
                note("warned", c.getId(), "strict");
            }
        }
        if (warning != null && warning.getContract() != null) {
            for (PreemptionContainer c : warning.getContract().getContainers()) {
                note("warned", c.getId(), "negotiable");
            }
        }
        for (NodeReport n : told.getUpdatedNodes()) {
            note("node", n.getNodeId(), n.getNodeState() + " " + n.getCapability());
        }
    }

    private void note(String kind, Object subject, Object details) throws IOException {
        String line = String.format(Locale.ROOT, "%.3f %s %s %s", System.currentTimeMillis() / 1000.0, kind, subject, details);
        Files.writeString(events, line.strip().replaceAll("\\s+", " ") + "\n",
            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
