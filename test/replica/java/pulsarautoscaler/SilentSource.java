// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.util.Map;
import org.apache.pulsar.functions.api.Record;
import org.apache.pulsar.io.core.Source;
import org.apache.pulsar.io.core.SourceContext;

/** A source that never has anything. */
public class SilentSource implements Source<byte[]> {
    @Override
    public void open(Map<String, Object> config, SourceContext context) {
    }

    @Override
    public Record<byte[]> read() throws InterruptedException {
        Thread.sleep(Long.MAX_VALUE); // until the instance is stopped
        return null;
    }

    @Override
    public void close() {
    }
}
