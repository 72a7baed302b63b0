// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const defaultInterval = time.Second

// Job is what is scraped, under one label job: over HTTPS, or over HTTP where CAFile is empty.
type Job struct {
	Name string
	// Addresses are host:port; each becomes the label instance.
	Addresses []string
	// ServerName is what the certificate must be for, and CAFile the authority that signed it.
	ServerName, CAFile string
	// TokenFile has the bearer token; empty is none.
	TokenFile string
	// Labels are those that service discovery would add. What is scraped wins over them (honor_labels).
	Labels map[string]string
}

// Config says what a server does. Dir and Jobs are required.
type Config struct {
	// Dir gets configuration, data and log.
	Dir string
	// Interval is the time between two scrapes, and between two evaluations of rules; 0 is 1 s.
	Interval time.Duration
	Jobs     []Job
	// RuleFiles are paths of recording rules and alerts.
	RuleFiles []string
	// Progress is told about a build of the binaries; nil is silence.
	Progress io.Writer
}

// Server is a running Prometheus.
type Server struct {
	cluster.Program

	// URL is where its HTTP API is.
	URL string
	api v1.API
}

// Start starts a server and returns when it is ready. It lives until Kill or the end of ctx; build the binaries before
// what has a time limit.
func Start(ctx context.Context, config Config) (*Server, error) {
	bins, err := binaries.BuildPrometheus(ctx, config.Progress)
	if err != nil {
		return nil, err
	}
	file, err := config.write()
	if err != nil {
		return nil, err
	}
	port, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	s := &Server{URL: "http://" + address}
	client, err := api.NewClient(api.Config{Address: s.URL})
	if err != nil {
		return nil, fmt.Errorf("making a client of Prometheus: %w", err)
	}
	s.api = v1.NewAPI(client)
	s.Program = cluster.Program{
		Program: proc.NewProgram(ctx, proc.Config{
			Name: "prometheus", Path: bins.Prometheus, LogPath: filepath.Join(config.Dir, "prometheus.log"),
			Args: []string{
				"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(config.Dir, "data"),
				"--web.listen-address=" + address,
				"--query.lookback-delta=15s", // a target that is gone has no samples soon, as with five minutes in real time
			},
		}),
		Ready: func(ctx context.Context) (bool, string, error) {
			_, err := s.api.Runtimeinfo(ctx)
			return err == nil, "", err
		},
	}
	return s, s.Restart(ctx)
}

// write writes the configuration into Dir and returns its path.
func (c Config) write() (path string, err error) {
	interval := model.Duration(cmp.Or(c.Interval, defaultInterval)).String()
	jobs := make([]map[string]any, 0, len(c.Jobs))
	for _, job := range c.Jobs {
		one := map[string]any{
			"job_name": job.Name, "honor_labels": true,
			"static_configs": []map[string]any{{"targets": job.Addresses, "labels": job.Labels}},
		}
		if job.CAFile != "" {
			one["scheme"] = "https"
			one["tls_config"] = map[string]any{"ca_file": job.CAFile, "server_name": job.ServerName}
		}
		if job.TokenFile != "" {
			one["authorization"] = map[string]any{"credentials_file": job.TokenFile}
		}
		jobs = append(jobs, one)
	}
	content, err := yaml.Marshal(map[string]any{
		"global": map[string]any{
			"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval,
		},
		"rule_files": c.RuleFiles, "scrape_configs": jobs,
	})
	if err != nil {
		return "", fmt.Errorf("encoding the configuration of Prometheus: %w", err)
	}
	path = filepath.Join(c.Dir, "prometheus.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing the configuration of Prometheus: %w", err)
	}
	return path, nil
}
