package tanist.partner;

import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;

/**
 * Starts the stock broker and says when clients can find it.
 *
 * <p>A broker registers as it starts, but says nothing and tries again only ten seconds later if its connection
 * to the name server was not up yet. A test would find no route meanwhile. So we register once more, when the
 * connection is there, and print a line after that. A broker whose role a controller decides registers as what
 * it is, so we wait until it has one. A slave takes over its master's tables only a minute later, so we have it
 * do that at once too; of a master this asks nothing.
 */
public final class BrokerMain {
    private static final long POLL_MS = 10;

    private BrokerMain() {
    }

    public static void main(String[] arguments) throws InterruptedException {
        BrokerController controller = BrokerStartup.createBrokerController(arguments);
        BrokerStartup.start(controller);
        while (controller.isIsolated()
                || controller.getBrokerOuterAPI().getRemotingClient().getAvailableNameSrvList().isEmpty()) {
            Thread.sleep(POLL_MS);
        }
        controller.registerBrokerAll(true, false, true);
        controller.getSlaveSynchronize().syncAll();
        System.out.println("broker registered");
    }
}
