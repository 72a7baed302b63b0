// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import java.util.Map;
import java.util.function.Consumer;
import org.apache.pulsar.io.core.BatchSourceTriggerer;
import org.apache.pulsar.io.core.SourceContext;

/** Makes a batch source discover its tasks once. */
public class TriggerOnce implements BatchSourceTriggerer {
    @Override
    public void init(Map<String, Object> config, SourceContext context) {
    }

    @Override
    public void start(Consumer<String> trigger) {
        trigger.accept("start");
    }

    @Override
    public void stop() {
    }
}
