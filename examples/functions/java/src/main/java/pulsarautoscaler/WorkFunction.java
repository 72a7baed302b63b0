// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.functions.api.Context;
import org.apache.pulsar.functions.api.Function;

/**
 * Copies each message to the output after a service time, as a function that calls a remote service does.
 *
 * <p>User configuration: serviceTimeMillis is the mean (10), distribution is Constant (the default), Exponential or Lognormal,
 * and sigma is that of Lognormal (1). Bytes in, because a typed function cannot subscribe to a topic that has a producer
 * without a schema.
 */
public class WorkFunction implements Function<byte[], byte[]> {
    /** A message that comes this soon after the one before had been waiting: Pulsar's part between two calls is less. */
    private static final long WAITED_NANOS = 1_000_000;
    /** What is made up for after the machine stalled the process. */
    private static final long DEBT_MAX_NANOS = 50_000_000;

    private double meanNanos;
    private String distribution;
    private double sigma;
    private long lastEnd;
    private long free;

    /** Called once the input is subscribed. */
    @Override
    public void initialize(Context context) throws Exception {
        meanNanos = Double.parseDouble(setting(context, "serviceTimeMillis", "10")) * 1e6;
        distribution = setting(context, "distribution", "Constant");
        sigma = Double.parseDouble(setting(context, "sigma", "1"));
        serviceNanos(); // a distribution that is unknown stops the start
        lastEnd = free = System.nanoTime();
    }

    @Override
    public byte[] process(byte[] input, Context context) throws Exception {
        long received = System.nanoTime();
        long begin = received;
        if (received - lastEnd < WAITED_NANOS) {
            begin = Math.max(free, received - DEBT_MAX_NANOS);
        }
        free = begin + serviceNanos();
        try {
            sleepUntil(free);
        } finally {
            lastEnd = System.nanoTime();
        }
        String output = context.getOutputTopic();
        return output == null || output.isEmpty() ? null : input;
    }

    /** What the next message costs. */
    protected long serviceNanos() {
        return Math.round(meanNanos * switch (distribution) {
            case "Constant" -> 1;
            case "Exponential" -> -Math.log(1 - ThreadLocalRandom.current().nextDouble());
            case "Lognormal" -> Math.exp(sigma * ThreadLocalRandom.current().nextGaussian() - sigma * sigma / 2);
            default -> throw new IllegalArgumentException(
                    "distribution is " + distribution + ": it must be Constant, Exponential or Lognormal");
        });
    }

    private static String setting(Context context, String key, String otherwise) {
        return context.getUserConfigValueOrDefault(key, otherwise).toString();
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
