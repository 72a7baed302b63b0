// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.functions.api.Context;
import org.apache.pulsar.functions.api.Function;

/**
 * A function whose cost per message is known. It tells a collector on localhost when each message was published and done,
 * and is told there what its cost is and when to fail. Bytes in, because a typed function cannot subscribe to a topic that
 * has a producer without a schema.
 *
 * <p>User configuration: collector ("host:port"), token (the first line to the collector), serviceMicros, failEvery.
 */
public class PacedFunction implements Function<byte[], Void> {
    /** A message that comes this soon after the one before had been waiting: Pulsar's part between two calls is less. */
    private static final long WAITED_NANOS = 1_000_000;
    /** What is made up for after the machine stalled the process. */
    private static final long DEBT_MAX_NANOS = 50_000_000;
    private static final int CONNECT_MILLIS = 5_000;

    private volatile long serviceNanos;
    private volatile long failEvery;
    private Socket socket;
    private OutputStream out;
    private long calls;
    private long lastEnd;
    private long free;

    /** Called once the input is subscribed, so that the collector knows from the connection that this instance consumes. */
    @Override
    public void initialize(Context context) throws IOException {
        serviceNanos = Long.parseLong(setting(context, "serviceMicros")) * 1_000;
        failEvery = Long.parseLong(setting(context, "failEvery"));
        String[] collector = setting(context, "collector").split(":");
        socket = new Socket();
        socket.connect(new InetSocketAddress(collector[0], Integer.parseInt(collector[1])), CONNECT_MILLIS);
        socket.setTcpNoDelay(true);
        out = socket.getOutputStream();
        lastEnd = free = System.nanoTime();
        send(setting(context, "token"));
        Thread orders = new Thread(this::obey, "orders");
        orders.setDaemon(true);
        orders.start();
    }

    @Override
    public Void process(byte[] input, Context context) throws Exception {
        long received = System.nanoTime();
        long begin = received;
        if (received - lastEnd < WAITED_NANOS) {
            begin = Math.max(free, received - DEBT_MAX_NANOS);
        }
        free = begin + serviceNanos;
        sleepUntil(free);
        calls++;
        long every = failEvery;
        try {
            if (every > 0 && calls % every == 0) {
                throw new IllegalStateException("told to fail every " + every + " calls");
            }
            Message<?> message = context.getCurrentRecord().getMessage().orElseThrow();
            send(message.getPublishTime() + " " + System.currentTimeMillis() + " " + sequence(input));
        } finally {
            lastEnd = System.nanoTime();
        }
        return null;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    /** Returns the number that the publisher wrote, or 0. */
    private static String sequence(byte[] input) {
        return input.length < Long.BYTES ? "0" : Long.toUnsignedString(ByteBuffer.wrap(input).getLong());
    }

    private static String setting(Context context, String key) {
        return context.getUserConfigValue(key).orElseThrow().toString();
    }

    private static void sleepUntil(long deadline) throws InterruptedException {
        for (long left = deadline - System.nanoTime(); left > 0; left = deadline - System.nanoTime()) {
            LockSupport.parkNanos(left);
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
        }
    }

    private void send(String line) throws IOException {
        out.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
    }

    /** Reads "serviceMicros N" and "failEvery N" until the connection ends. */
    private void obey() {
        try {
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] order = line.split(" ");
                switch (order[0]) {
                    case "serviceMicros" -> serviceNanos = Long.parseLong(order[1]) * 1_000;
                    case "failEvery" -> failEvery = Long.parseLong(order[1]);
                    default -> throw new IllegalArgumentException("unknown order: " + line);
                }
            }
        } catch (IOException e) {
            // The harness or this instance has closed the connection.
        }
    }
}
