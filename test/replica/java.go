// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// JavaConfig configures Java replicas. Dist is required.
type JavaConfig struct {
	// Dist is the Pulsar distribution of the function instance; distribution.Fetch or Broker.Dist returns it.
	Dist distribution.Pulsar
	// Progress gets a line when something is compiled; nil for none.
	Progress io.Writer
	// Completed is called for each processed message, from one goroutine per replica; nil for no calls.
	Completed func(Completion)
	// JVMFlags are added to those of an instance and override them, e.g. "-Xmx512m".
	JVMFlags []string
}

// Java runs replicas that are Pulsar's own Java function instance, one local process each.
type Java struct {
	instances
	config    JavaConfig
	kit       jdk.JDK
	jar       string
	classPath string // all jars of the distribution
}

var _ Runner = (*Java)(nil)

// NewJava compiles the function, unless it is in the cache, and returns a runner. Close it after its replicas. Errors
// wrap jdk.ErrNoJDK or quote the compiler.
func NewJava(ctx context.Context, config JavaConfig) (_ *Java, err error) {
	j := &Java{config: config, instances: instances{completed: config.Completed}}
	if j.kit, err = jdk.Find(); err != nil {
		return nil, err
	}
	if j.jar, err = Jar(ctx, config.Dist, config.Progress); err != nil {
		return nil, err
	}
	jars, err := filepath.Glob(filepath.Join(config.Dist.Lib, "*.jar"))
	if err != nil {
		return nil, fmt.Errorf("listing the jars of Pulsar %s: %w", config.Dist.Version, err)
	}
	j.classPath = strings.Join(jars, string(os.PathListSeparator))
	return j, j.open(ctx)
}

// Start starts a process, which takes about 3 s of CPU time and 200 MB until it is ready; the Replica is a *Process.
// Errors are about in, ports or the start; Process.Err has later ones.
func (j *Java) Start(ctx context.Context, in Instance) (Replica, error) {
	class := FunctionClass
	if in.AsyncRequests > 0 {
		class = asyncClass
	}
	return j.start(ctx, in, class, func(in Instance, args arguments) proc.Config {
		return proc.Config{Path: j.kit.Java(), Args: j.arguments(in, args)}
	})
}

// JVMFlags are those of the broker and of a small heap, for an instance with temporary files in a directory.
func JVMFlags(kit jdk.JDK, temporary string) []string {
	return append(broker.JVMFlags(kit),
		"-Xms16m", "-XX:MaxDirectMemorySize=128m", "-XX:ReservedCodeCacheSize=64m", "-Xss512k",
		"-Djava.io.tmpdir="+temporary,
		// By default Netty takes 2 event loops and a memory arena per core.
		"-Dio.netty.eventLoopThreads=1", "-Dio.netty.allocator.numDirectArenas=1", "-Dio.netty.allocator.numHeapArenas=1",
	)
}

// arguments is the command line of pods in the worker's Kubernetes runtime. java-instance.jar of the distribution
// isolates Pulsar's classes from the function's; without that jar they share one class path.
func (j *Java) arguments(in Instance, given arguments) []string {
	args := append(JVMFlags(j.kit, j.dir), "-Xmx128m", "-Dlog4j.configurationFile="+j.source("java/log4j2.xml"))
	args = append(args, j.config.JVMFlags...)
	if main := j.config.Dist.InstanceJar; main != "" {
		args = append(args, "-Dpulsar.functions.instance.classpath="+j.classPath, "-cp", main,
			"org.apache.pulsar.functions.instance.JavaInstanceMain")
	} else {
		args = append(args, "-cp", j.jar+string(os.PathListSeparator)+j.classPath, flatClass)
	}
	args = append(args,
		"--jar", j.jar, "--instance_id", strconv.Itoa(in.ID), "--function_id", in.FQFN(), "--function_version", "0",
		"--function_details", given.details, "--pulsar_serviceurl", in.ServiceURL, "--max_buffered_tuples", "1024",
		"--port", strconv.Itoa(given.grpcPort), "--metrics_port", strconv.Itoa(given.metricsPort),
		"--pending_async_requests", strconv.Itoa(cmp.Or(in.AsyncRequests, defaultAsync)),
		"--expected_healthcheck_interval", "-1", "--cluster_name", clusterName, "--nar_extraction_directory", j.dir,
		"--secrets_provider", "org.apache.pulsar.functions.secretsprovider.ClearTextSecretsProvider",
	)
	if in.Token != "" {
		args = append(args, "--client_auth_plugin", "org.apache.pulsar.client.impl.auth.AuthenticationToken",
			"--client_auth_params", "token:"+in.Token)
	}
	return args
}
