// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.util.Map;
import java.util.function.Consumer;
import org.apache.pulsar.functions.api.Record;
import org.apache.pulsar.io.core.BatchSource;
import org.apache.pulsar.io.core.SourceContext;

/** A batch source that discovers five tasks, each of which is one message. */
public class BatchOfTasks implements BatchSource<byte[]> {
    private static final int TASKS = 5;

    private byte[] task;

    @Override
    public void open(Map<String, Object> config, SourceContext context) {
    }

    @Override
    public void discover(Consumer<byte[]> discovered) {
        for (int i = 0; i < TASKS; i++) {
            discovered.accept(new byte[] {(byte) i});
        }
    }

    @Override
    public void prepare(byte[] next) {
        task = next;
    }

    /** Returns the message of the task, and then null: the task is done. */
    @Override
    public Record<byte[]> readNext() {
        byte[] value = task;
        task = null;
        return value == null ? null : () -> value;
    }

    @Override
    public void close() {
    }
}
