// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/python"
)

const pythonClass = "paced.PacedFunction"

// Python runs replicas that are Pulsar's own Python function instance, one local process each. It needs python3 3.9 or
// later with its module venv, and PyPI once.
type Python struct {
	instances
	kit      python.Python
	instance string // the directory of python_instance_main.py
	packages string
}

var _ Runner = (*Python)(nil)

// NewPython installs the packages of an instance, unless they are in the cache (20 s, reported to progress; nil for
// none), and returns a runner that calls completed as Java does; nil for no calls. Close it after its replicas. Errors
// wrap python.ErrNoPython, or quote pip or Maven.
func NewPython(ctx context.Context, progress io.Writer, completed func(Completion)) (_ *Python, err error) {
	p := &Python{instances: instances{completed: completed}}
	if p.kit, err = python.Find(ctx); err != nil {
		return nil, err
	}
	if p.packages, err = pythonPackages(ctx, p.kit, progress); err != nil {
		return nil, err
	}
	if p.instance, err = distribution.FetchPythonInstance(ctx, progress); err != nil {
		return nil, err
	}
	return p, p.open(ctx)
}

// Start starts a process, which takes about 1 s of CPU time and 70 MB until it is ready; the Replica is a *Process.
// Failed messages are redelivered after 1 min: a Python instance has no setting for it.
func (p *Python) Start(ctx context.Context, in Instance) (Replica, error) {
	if in.RedeliverAfter != 0 || in.AsyncRequests != 0 || in.Token != "" {
		return nil, fmt.Errorf(
			"replica.Instance has RedeliverAfter %s, AsyncRequests %d, Token %t: Python replicas have none of them",
			in.RedeliverAfter, in.AsyncRequests, in.Token != "")
	}
	return p.start(ctx, in, pythonClass, func(in Instance, args arguments) proc.Config {
		return proc.Config{
			Path: p.kit.Path, Args: p.arguments(in, args),
			Env: []string{
				"PYTHONPATH=" + strings.Join([]string{
					p.instance, p.packages, p.source("python"), filepath.Join(p.root, "examples", "functions", "python"),
				}, string(os.PathListSeparator)),
				"PYTHONDONTWRITEBYTECODE=1",
				"PACED_CONFIG=" + args.config, "PACED_METRICS_PORT=" + strconv.Itoa(args.metricsPort),
			},
		}
	})
}

// arguments is the command line of pods in the worker's Kubernetes runtime.
func (p *Python) arguments(in Instance, given arguments) []string {
	return []string{
		filepath.Join(p.instance, "python_instance_main.py"),
		"--py", p.source("python/paced.py"), "--instance_id", strconv.Itoa(in.ID), "--function_id", in.FQFN(),
		"--function_version", "0", "--function_details", given.details, "--pulsar_serviceurl", in.ServiceURL,
		"--max_buffered_tuples", "100",
		"--port", strconv.Itoa(given.grpcPort), "--metrics_port", strconv.Itoa(given.metricsPort),
		"--logging_directory", p.dir, "--logging_file", "function", "--logging_config_file",
		p.source("python/logging.ini"),
		"--expected_healthcheck_interval", "-1", "--cluster_name", clusterName,
		"--secrets_provider", "secretsprovider.ClearTextSecretsProvider",
	}
}
