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
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.functions.api.Context;

/**
 * Tells a collector on localhost when each message was published and done and what it took, and is told there what the cost of a message is
 * and when to fail.
 *
 * <p>User configuration: collector ("host:port"), token (the first line to the collector), serviceMicros, failEvery.
 */
final class Reporter {
    private static final int CONNECT_MILLIS = 5_000;

    private final Socket socket = new Socket();
    private final OutputStream out;
    private volatile long serviceNanos;
    private volatile long failEvery;

    /** Connects. The collector knows from the connection that the instance consumes. */
    Reporter(Context context) throws IOException {
        serviceNanos = Long.parseLong(setting(context, "serviceMicros")) * 1_000;
        failEvery = Long.parseLong(setting(context, "failEvery"));
        String[] collector = setting(context, "collector").split(":");
        socket.connect(new InetSocketAddress(collector[0], Integer.parseInt(collector[1])), CONNECT_MILLIS);
        socket.setTcpNoDelay(true);
        out = socket.getOutputStream();
        send(setting(context, "token"));
        Thread orders = new Thread(this::obey, "orders");
        orders.setDaemon(true);
        orders.start();
    }

    /** What a message costs now. */
    long serviceNanos() {
        return serviceNanos;
    }

    /** Says whether the call of this number has to fail, from 1. */
    boolean fails(long call) {
        long every = failEvery;
        return every > 0 && call % every == 0;
    }

    /** Why it failed. */
    RuntimeException failure() {
        return new IllegalStateException("told to fail every " + failEvery + " calls");
    }

    /** Reports a message that is done now, after a call of so many nanoseconds. */
    void done(Message<?> message, long took, byte[] input) throws IOException {
        send(message.getPublishTime() + " " + System.currentTimeMillis() + " " + took / 1_000 + " " + sequence(input));
    }

    void close() throws IOException {
        socket.close();
    }

    /** Returns the number that the publisher wrote, or 0. */
    private static String sequence(byte[] input) {
        return input.length < Long.BYTES ? "0" : Long.toUnsignedString(ByteBuffer.wrap(input).getLong());
    }

    private static String setting(Context context, String key) {
        return context.getUserConfigValue(key).orElseThrow().toString();
    }

    private synchronized void send(String line) throws IOException {
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
