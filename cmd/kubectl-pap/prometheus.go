// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
)

// serverOptions are the flags for a Prometheus.
type serverOptions struct {
	url, tokenFile, username, passwordFile, caFile string
}

func (o *serverOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.url, "prometheus", "", "URL of a Prometheus, or of a server with its HTTP API.")
	f.StringVar(&o.tokenFile, "prometheus-token-file", "", "File with a bearer token for Prometheus.")
	f.StringVar(&o.username, "prometheus-username", "", "User name for Prometheus.")
	f.StringVar(&o.passwordFile, "prometheus-password-file", "", "File with the password for --prometheus-username.")
	f.StringVar(&o.caFile, "prometheus-ca-file", "", "PEM file of the authority that signed Prometheus' certificate.")
}

// periodOptions are the flags for a Prometheus and a period.
type periodOptions struct {
	serverOptions

	since, until string
}

// add adds the flags; since is the default of --since.
func (o *periodOptions) add(f *pflag.FlagSet, since string) {
	o.serverOptions.add(f)
	f.StringVar(&o.since, "since", since, "How far back the period starts, such as 7d or 12h.")
	f.StringVar(&o.until, "until", "", "When the period ends, in RFC 3339. Default: now.")
}

// loadOptions are the flags for the load of a Function in Prometheus.
type loadOptions struct {
	periodOptions

	step      time.Duration
	saveTrace string

	topics                            []string
	subscription, namespace, workload string
}

// add adds the flags except the namespace.
func (o *loadOptions) add(f *pflag.FlagSet) {
	o.periodOptions.add(f, "7d")
	f.DurationVar(&o.step, "step", time.Minute,
		"Time between two samples: at least the scrape interval. Rates are over two steps.")
	f.StringVar(&o.saveTrace, "save-trace", "", "File to write the load to, for --trace.")
	f.StringSliceVar(&o.topics, "topic", nil,
		"Input topic including its partitions; may be repeated. Default: spec.subscription of the policy.")
	f.StringVar(&o.subscription, "subscription", "",
		"Name of the subscription. Default: spec.subscription.name of the policy.")
	f.StringVar(&o.workload, "workload", "", "Workload of the replicas in kube-state-metrics: statefulset/NAME or "+
		"deployment/NAME. Default: from the target of the policy.")
}

// read reads the history of a policy's target.
func (o *loadOptions) read(ctx context.Context, policy v1alpha1.AutoscalingPolicy,
	maxGap time.Duration,
) (history.History, error) {
	c := history.Config{Function: history.TargetOf(policy), Step: o.step, MaxGap: maxGap}
	var err error
	if c.Server, err = o.server(); err != nil {
		return history.History{}, err
	}
	if c.From, c.To, err = o.times(time.Now()); err != nil {
		return history.History{}, err
	}
	if c.Function, err = o.override(c.Function); err != nil {
		return history.History{}, err
	}
	read, err := history.Read(ctx, c)
	if err != nil || o.saveTrace == "" {
		return read, err
	}
	if err := output.File(o.saveTrace, read.CSV); err != nil {
		return read, fmt.Errorf("--save-trace: %w", err)
	}
	return read, nil
}

// times returns the period.
func (o *periodOptions) times(now time.Time) (from, to time.Time, err error) {
	since, err := model.ParseDuration(o.since)
	if err != nil || since <= 0 {
		return from, to, fmt.Errorf("--since is %q: it must be a duration above 0 such as 7d or 12h", o.since)
	}
	to = now
	if o.until != "" {
		if to, err = time.Parse(time.RFC3339, o.until); err != nil {
			return from, to, fmt.Errorf("--until is %q: it must be a time such as 2026-03-02T09:00:00Z", o.until)
		}
	}
	return to.Add(-time.Duration(since)), to, nil
}

// override applies the flags to the policy's target.
func (o *loadOptions) override(f history.Function) (history.Function, error) {
	if len(o.topics) > 0 {
		f.Topics, f.TopicsPattern = o.topics, ""
	}
	if o.subscription != "" {
		f.Subscription = o.subscription
	}
	if o.namespace != "" {
		f.Namespace = o.namespace
	}
	if o.workload != "" {
		kind, name, _ := strings.Cut(o.workload, "/")
		kinds := map[string]string{"statefulset": "StatefulSet", "deployment": "Deployment"}
		if f.Kind, f.Workload = kinds[strings.ToLower(kind)], name; f.Kind == "" || name == "" {
			return f, fmt.Errorf("--workload is %q: it must be statefulset/NAME or deployment/NAME", o.workload)
		}
	}
	return f, nil
}

// server reads the files of the flags.
func (o *serverOptions) server() (history.Server, error) {
	token, err := readFile("prometheus-token-file", o.tokenFile)
	password, errPassword := readFile("prometheus-password-file", o.passwordFile)
	authorities, errCA := readFile("prometheus-ca-file", o.caFile)
	return history.Server{
		URL: o.url, Token: strings.TrimSpace(string(token)), Username: o.username,
		Password: strings.TrimSpace(string(password)), CA: authorities,
	}, errors.Join(err, errPassword, errCA)
}

// readFile reads the file of a flag; nil without a path.
func readFile(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return content, nil
}
