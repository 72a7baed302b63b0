// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsarautoscaler;

import org.apache.pulsar.functions.runtime.JavaInstanceStarter;

/**
 * Starts Pulsar's function instance from one class path. JavaInstanceMain of java-instance.jar calls the same starter with
 * two class loaders; only the server tarball has that jar.
 */
public final class FlatInstance {
    private FlatInstance() {
    }

    /** Takes the arguments of JavaInstanceMain. */
    public static void main(String[] args) throws Exception {
        ClassLoader loader = FlatInstance.class.getClassLoader();
        Thread.currentThread().setContextClassLoader(loader);
        new JavaInstanceStarter().start(args, loader, loader);
    }
}
