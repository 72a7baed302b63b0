// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.functions.api.Context;
import org.apache.pulsar.functions.api.Function;

/**
 * A function that returns at once and is done with each message after a known time, as one that calls a remote service does.
 * How many messages it works on at a time is the instance's --pending_async_requests.
 */
public class PacedAsyncFunction implements Function<byte[], CompletableFuture<Void>> {
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "timer");
        thread.setDaemon(true);
        return thread;
    });
    private Reporter reporter;
    private long calls;

    /** Called once the input is subscribed. */
    @Override
    public void initialize(Context context) throws IOException {
        reporter = new Reporter(context);
    }

    @Override
    public CompletableFuture<Void> process(byte[] input, Context context) {
        Message<?> message = context.getCurrentRecord().getMessage().orElseThrow();
        boolean fails = reporter.fails(++calls);
        CompletableFuture<Void> result = new CompletableFuture<>();
        timer.schedule(() -> finish(result, fails, message, input), reporter.serviceNanos(), TimeUnit.NANOSECONDS);
        return result;
    }

    @Override
    public void close() throws IOException {
        timer.shutdownNow();
        reporter.close();
    }

    private void finish(CompletableFuture<Void> result, boolean fails, Message<?> message, byte[] input) {
        try {
            if (fails) {
                throw reporter.failure();
            }
            reporter.done(message, 0, input);
            result.complete(null);
        } catch (Exception e) {
            result.completeExceptionally(e);
        }
    }
}
