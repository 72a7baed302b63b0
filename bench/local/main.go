// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/faults"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the fake Function Mesh logs for tests only
	command.Main("local", func(ctx context.Context, args []string, out, progress io.Writer) error {
		return run(ctx, args, streams{in: os.Stdin, out: out, progress: progress})
	})
}

type streams struct {
	in            io.Reader
	out, progress io.Writer
}

func run(ctx context.Context, args []string, s streams) error {
	config, outages, err := parse(args, s.progress)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var front *proxy
	if outages {
		front = newProxy(s.progress)
		defer front.close()
		config.AdapterFlags = append(config.AdapterFlags, "--allowed-pulsar-hosts="+front.server.URL)
	}
	opened := make(chan struct{}) // nothing is broken before
	go func() {
		for lines := bufio.NewScanner(s.in); lines.Scan(); { // until its end
			<-opened
			front.obey(lines.Text())
		}
		end()
	}()
	scene, err := stage.OpenApart(ctx, config)
	if err != nil {
		return err
	}
	defer scene.Close()
	address := bench.Address{
		Kubeconfig: scene.Cluster.Kubeconfig(), AdminURL: scene.Broker.AdminURL(), ServiceURL: scene.Broker.ServiceURL(),
		Pulsar: scene.Broker.Version(),
	}
	if outages {
		address.ProxyURL = front.server.URL
		if err := front.serve(address.AdminURL); err != nil {
			return err
		}
	}
	close(opened)
	if err := json.NewEncoder(s.out).Encode(address); err != nil {
		return fmt.Errorf("writing how to reach the cluster: %w", err)
	}
	<-ctx.Done()
	return nil
}

// proxy stands before the admin service. It has an address before the broker has one, for the flags of the adapter.
type proxy struct {
	server *httptest.Server
	routes *http.ServeMux
	faults *faults.Proxy
	// resumed ends the outage; nil without one.
	resumed  chan struct{}
	progress io.Writer
}

func newProxy(progress io.Writer) *proxy {
	routes := http.NewServeMux()
	return &proxy{server: httptest.NewServer(routes), routes: routes, progress: progress}
}

// serve begins to pass requests on.
func (p *proxy) serve(adminURL string) (err error) {
	if p.faults, err = faults.NewProxy(adminURL); err == nil {
		p.routes.Handle("/", p.faults)
	}
	return err
}

// obey begins an outage with break, and ends it with answer. Several contenders may begin the same one.
func (p *proxy) obey(line string) {
	switch {
	case p == nil:
	case line == "break" && p.resumed == nil:
		p.resumed = make(chan struct{})
		p.faults.Falsify(faults.Hangs(p.resumed), faults.Always)
		output.Printf(p.progress, "Pulsar's admin service does not answer autoscalers.\n")
	case line == "answer" && p.resumed != nil:
		p.faults.Tell()
		close(p.resumed)
		p.resumed = nil
		output.Printf(p.progress, "Pulsar's admin service answers again.\n")
	}
}

func (p *proxy) close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// parse reads the flags. The defaults are as shipped.
func parse(args []string, progress io.Writer) (config stage.Config, outages bool, err error) {
	config = stage.Config{Guests: true, Progress: progress}
	flags := command.Flags("local", progress)
	withKEDA := flags.Bool("keda", false, "run KEDA and our scaler too")
	flags.Func("adapter-flag", "a flag of the adapter that differs from its shipped value; may be repeated",
		func(text string) error {
			config.AdapterFlags = append(config.AdapterFlags, text)
			return nil
		})
	flags.DurationVar(&config.HPASyncPeriod, "hpa-sync", 15*time.Second, "sync period of the HPA controller")
	flags.BoolVar(&outages, "outages", false,
		"a proxy before the admin service, silent from a line break on the standard input until a line answer")
	if err := command.Parse(flags, args); err != nil {
		return stage.Config{}, false, err
	}
	if *withKEDA {
		config.KEDA = &keda.Config{}
	}
	return config, outages, nil
}
