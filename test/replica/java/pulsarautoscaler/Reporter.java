// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.functions.api.Context;

/**
 * Tells a collector on localhost when each message was published and done and what it took.
 *
 * <p>User configuration: collector ("host:port"), token (the first line to the collector), serviceMicros, failEvery.
 */
final class Reporter {
    private static final int CONNECT_MILLIS = 5_000;

    private final Socket socket = new Socket();
    private final OutputStream out;
    private final long serviceNanos;
    private final long failEvery;

    /** Connects. The collector knows from the connection that the instance consumes. */
    Reporter(Context context) throws IOException {
        serviceNanos = Long.parseLong(setting(context, "serviceMicros")) * 1_000;
        failEvery = Long.parseLong(setting(context, "failEvery"));
        String[] collector = setting(context, "collector").split(":");
        socket.connect(new InetSocketAddress(collector[0], Integer.parseInt(collector[1])), CONNECT_MILLIS);
        socket.setTcpNoDelay(true);
        out = socket.getOutputStream();
        send(setting(context, "token"));
    }

    /** What a message costs. */
    long serviceNanos() {
        return serviceNanos;
    }

    /** Says whether the call of this number has to fail, from 1. */
    boolean fails(long call) {
        return failEvery > 0 && call % failEvery == 0;
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
}
