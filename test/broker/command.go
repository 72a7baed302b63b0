// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
)

// fullDisk is the used share of a disk from which the bookie rejects writes ("Not enough non-faulty bookies"). A test
// writes megabytes on a shared disk: at 0.99 a disk of 250 GB counts as full with 2.5 GB free.
const fullDisk = "0.99999"

// settings are the keys of standalone.conf. statsUpdateFrequencyInSecs is the broker's default: the product must handle
// rates that are up to 60 s old. Client and bookie are in one JVM, so the bookie needs no port: its default port is on
// all interfaces and random, and may be taken when the broker restarts.
func settings(ports ports, extra map[string]string) map[string]string {
	all := map[string]string{
		"clusterName":                       "standalone",
		"brokerServicePort":                 fmt.Sprint(ports.service),
		"webServicePort":                    fmt.Sprint(ports.admin),
		"bindAddress":                       "127.0.0.1",
		"managedLedgerDefaultEnsembleSize":  "1",
		"managedLedgerDefaultWriteQuorum":   "1",
		"managedLedgerDefaultAckQuorum":     "1",
		"managedLedgerCacheSizeMB":          "64",
		"allowLoopback":                     "true",
		"enableLocalTransport":              "true",
		"disableServerSocketBind":           "true",
		"journalSyncData":                   "false",
		"journalMaxGroupWaitMSec":           "1",
		"diskUsageThreshold":                fullDisk,
		"diskUsageWarnThreshold":            fullDisk,
		"ledgerStorageClass":                "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
		"dbStorage_writeCacheMaxSizeMb":     "64",
		"dbStorage_readAheadCacheMaxSizeMb": "32",
		"loadManagerClassName":              "org.apache.pulsar.broker.loadbalance.NoopLoadManager",
		"loadBalancerEnabled":               "false",
		"webSocketServiceEnabled":           "false",
		"systemTopicEnabled":                "true",
		"numHttpServerThreads":              "8",
		"brokerDeleteInactiveTopicsEnabled": "false",
		"statsUpdateFrequencyInSecs":        "60",
		"brokerShutdownTimeoutMs":           "3000",
		// Without a port, BookKeeper 4.17.2 cannot send entries of 16 KiB or more in version 2 of its protocol: a topic with
		// one in its backlog would stop once it is out of the broker's cache.
		"bookkeeperUseV2WireProtocol": "false",
	}
	maps.Copy(all, extra)
	return all
}

// render writes settings in the order of their names.
func render(settings map[string]string) []byte {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s=%s\n", key, settings[key])
	}
	return []byte(text.String())
}

// opened are the packages to which Pulsar's libraries need reflective access.
func opened() []string {
	return []string{
		"java.base/java.io", "java.base/java.util.zip", "java.base/java.nio", "java.base/jdk.internal.misc",
		"java.base/jdk.internal.platform", "java.management/sun.management", "jdk.management/com.sun.management.internal",
	}
}

// JVMFlags are the flags that Pulsar requires on a JDK, and those for a small JVM: with the serial collector and the
// first compiler a broker starts with half the CPU time and two thirds of the memory.
func JVMFlags(kit jdk.JDK) []string {
	flags := []string{
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
		"-Djava.net.preferIPv4Stack=true", "-Dio.netty.tryReflectionSetAccessible=true", "--enable-native-access=ALL-UNNAMED",
	}
	for _, pkg := range opened() {
		flags = append(flags, "--add-opens", pkg+"=ALL-UNNAMED")
	}
	if kit.Major() >= 23 {
		flags = append(flags, "--sun-misc-unsafe-memory-access=allow")
	}
	return flags
}

// arguments is the command line of the broker, run in dir.
func arguments(kit jdk.JDK, dist distribution.Pulsar, dir string, config Config) []string {
	args := append(JVMFlags(kit),
		"-Xms64m", "-Xmx1g", "-XX:MaxDirectMemorySize=1g", "-XX:+ExitOnOutOfMemoryError",
		"-Djute.maxbuffer=10485760",
		"-Djava.io.tmpdir="+filepath.Join(dir, "tmp"),
		"-Dbookkeeper.metadata.bookie.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver",
		"-Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
		"-Dlog4j.configurationFile="+filepath.Join(dir, "conf", "log4j2.xml"),
	)
	args = append(args, config.JVMFlags...)
	args = append(args, "-cp", filepath.Join(dist.Lib, "*"),
		"org.apache.pulsar.PulsarStandaloneStarter",
		"-c", filepath.Join(dir, "conf", "standalone.conf"),
		"-nss", "--advertised-address", "127.0.0.1",
		"--metadata-dir", filepath.Join(dir, "data", "metadata"),
		"--bookkeeper-dir", filepath.Join(dir, "data", "bookkeeper"),
	)
	if config.WithoutWorker {
		return append(args, "--no-functions-worker")
	}
	return append(args, "--functions-worker-conf", filepath.Join(dir, "conf", "functions_worker.yml"))
}
