package tanist.partner;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Stands between a slave and its master for one connection, and keeps what each of them said. */
final class Relay implements AutoCloseable {
    private final ServerSocket listener;
    private final int masterPort;
    private final ByteArrayOutputStream fromSlave = new ByteArrayOutputStream();
    private final ByteArrayOutputStream fromMaster = new ByteArrayOutputStream();

    Relay(int masterPort) throws IOException {
        this.masterPort = masterPort;
        this.listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        new Thread(this::serve, "relay").start();
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    byte[] fromSlave() {
        return fromSlave.toByteArray();
    }

    byte[] fromMaster() {
        return fromMaster.toByteArray();
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }

    private void serve() {
        try (Socket slave = listener.accept();
            Socket master = new Socket(InetAddress.getLoopbackAddress(), masterPort)) {
            Thread answers = new Thread(() -> pump(master, slave, fromMaster), "relay-answers");
            answers.start();
            pump(slave, master, fromSlave);
        } catch (IOException closed) {
            // The capture is over, or it will wait in vain and say for what.
            return;
        }
    }

    private static void pump(Socket from, Socket to, ByteArrayOutputStream kept) {
        try {
            InputStream input = from.getInputStream();
            OutputStream output = to.getOutputStream();
            byte[] buffer = new byte[64 * 1024];
            for (int count = input.read(buffer); count >= 0; count = input.read(buffer)) {
                kept.write(buffer, 0, count);
                output.write(buffer, 0, count);
            }
        } catch (IOException closed) {
            // One side hung up; the other one is closed by serve().
            return;
        }
    }
}
