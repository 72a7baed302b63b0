// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.io.IOException;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.functions.api.Context;
import org.apache.pulsar.functions.api.Function;

/**
 * A function whose cost per message is known, see {@link Reporter}. Bytes in, because a typed function cannot subscribe to a
 * topic that has a producer without a schema.
 */
public class PacedFunction implements Function<byte[], Void> {
    /** A message that comes this soon after the one before had been waiting: Pulsar's part between two calls is less. */
    private static final long WAITED_NANOS = 1_000_000;
    /** What is made up for after the machine stalled the process. */
    private static final long DEBT_MAX_NANOS = 50_000_000;

    private Reporter reporter;
    private long calls;
    private long lastEnd;
    private long free;

    /** Called once the input is subscribed. */
    @Override
    public void initialize(Context context) throws IOException {
        lastEnd = free = System.nanoTime();
        reporter = new Reporter(context);
    }

    @Override
    public Void process(byte[] input, Context context) throws Exception {
        long received = System.nanoTime();
        long begin = received;
        if (received - lastEnd < WAITED_NANOS) {
            begin = Math.max(free, received - DEBT_MAX_NANOS);
        }
        free = begin + reporter.serviceNanos();
        sleepUntil(free);
        calls++;
        try {
            if (reporter.fails(calls)) {
                throw reporter.failure();
            }
            reporter.done(context.getCurrentRecord().getMessage().orElseThrow(), System.nanoTime() - received, input);
        } finally {
            lastEnd = System.nanoTime();
        }
        return null;
    }

    @Override
    public void close() throws IOException {
        reporter.close();
    }

    private static void sleepUntil(long deadline) throws InterruptedException {
        for (long left = deadline - System.nanoTime(); left > 0; left = deadline - System.nanoTime()) {
            LockSupport.parkNanos(left);
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
        }
    }
}
