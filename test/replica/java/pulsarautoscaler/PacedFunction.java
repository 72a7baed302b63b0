// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.io.IOException;
import org.apache.pulsar.functions.api.Context;

/** The example function with a {@link Reporter}, which also says what a message costs and when to fail. */
public class PacedFunction extends WorkFunction {
    private Reporter reporter;
    private long calls;

    /** Called once the input is subscribed. */
    @Override
    public void initialize(Context context) throws Exception {
        super.initialize(context);
        reporter = new Reporter(context);
    }

    @Override
    public byte[] process(byte[] input, Context context) throws Exception {
        long received = System.nanoTime();
        byte[] output = super.process(input, context);
        calls++;
        if (reporter.fails(calls)) {
            throw reporter.failure();
        }
        reporter.done(context.getCurrentRecord().getMessage().orElseThrow(), System.nanoTime() - received, input);
        return output;
    }

    @Override
    protected long serviceNanos() {
        return reporter == null ? 0 : reporter.serviceNanos();
    }

    @Override
    public void close() throws IOException {
        reporter.close();
    }
}
