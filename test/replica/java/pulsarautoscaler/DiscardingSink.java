// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.util.Map;
import org.apache.pulsar.functions.api.Record;
import org.apache.pulsar.io.core.Sink;
import org.apache.pulsar.io.core.SinkContext;

/** A sink that takes every message and keeps none. */
public class DiscardingSink implements Sink<byte[]> {
    @Override
    public void open(Map<String, Object> config, SinkContext context) {
    }

    @Override
    public void write(Record<byte[]> message) {
        message.ack();
    }

    @Override
    public void close() {
    }
}
