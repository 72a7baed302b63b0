// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

const module = "github.com/pulsar-autoscaler/pulsar-autoscaler"

// Local is a cluster on this machine.
type Local struct {
	Kube   client.Client
	Pulsar scenario.Pulsar
	// Differs are the flags that differ from their shipped defaults, and an outage.
	Differs []string

	dir   string
	in    io.WriteCloser
	ended <-chan struct{}
}

// Address has the addresses of a cluster, as bench/local prints them.
type Address struct {
	Kubeconfig string `json:"kubeconfig"`
	AdminURL   string `json:"adminURL"`
	ServiceURL string `json:"serviceURL"`
	Pulsar     string `json:"pulsar"`
	// ProxyURL is the admin service with outages; empty without them.
	ProxyURL string `json:"proxyURL,omitempty"`
}

// StartLocal builds and starts bench/local from the checkout in the working directory: a real control plane, a real
// broker, the adapter and, if the scenario needs it, KEDA. It lives until Close.
func StartLocal(ctx context.Context, s scenario.Scenario, progress io.Writer) (_ *Local, err error) {
	sources, err := checkout(ctx)
	if err != nil {
		return nil, err
	}
	l := &Local{}
	if l.dir, err = os.MkdirTemp("", "kubectl-pap-"); err != nil {
		return nil, fmt.Errorf("making a directory for bench/local: %w", err)
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	program := filepath.Join(l.dir, "local")
	output.Printf(progress, "Building bench/local ...\n")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/local")
	build.Dir = sources
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building bench/local: %w: %s", err, out)
	}
	var args []string
	args, l.Differs = localFlags(s)
	return l, l.start(ctx, program, sources, args, progress)
}

// checkout is the directory of the sources.
func checkout(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	path, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || path != module {
		return "", errors.New("--local needs a checkout of pulsar-autoscaler as working directory, Go 1.26, " +
			"Git, Maven and a JDK from 17 on")
	}
	return dir, nil
}

// localFlags returns the flags of bench/local, and those that differ from their shipped defaults.
func localFlags(s scenario.Scenario) (args, differs []string) {
	const shippedSync = 15 * time.Second
	if s.NeedsKEDA() {
		args = append(args, "-keda")
	}
	sync := s.Local.HPASyncPeriod.Duration
	args = append(args, "-hpa-sync="+sync.String())
	if sync != shippedSync {
		differs = append(differs, "kube-controller-manager --horizontal-pod-autoscaler-sync-period="+sync.String())
	}
	for _, flag := range s.Local.AdapterFlags {
		args, differs = append(args, "-adapter-flag="+flag), append(differs, "adapter "+flag)
	}
	if outage := s.Local.Outage; outage.For.Duration > 0 {
		args = append(args, "-outages")
		differs = append(differs, fmt.Sprintf("Pulsar's admin service does not answer autoscalers for %s, after %s of load",
			outage.For.Duration, outage.At.Duration))
	}
	return args, differs
}

// Break stops or resumes the answers of the admin service to autoscalers, in a scenario with an outage.
func (l *Local) Break(broken bool) error {
	line := "answer\n"
	if broken {
		line = "break\n"
	}
	if _, err := io.WriteString(l.in, line); err != nil {
		return fmt.Errorf("breaking Pulsar's admin service: %w", err)
	}
	return nil
}

// start starts the program. It runs until its standard input is closed, even after ctx ends: the clean-up needs it.
func (l *Local) start(ctx context.Context, program, sources string, args []string, progress io.Writer) error {
	command := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	command.Dir, command.Stderr = sources, progress
	detach(command)
	in, errIn := command.StdinPipe()
	out, errOut := command.StdoutPipe()
	if err := errors.Join(errIn, errOut, command.Start()); err != nil {
		return fmt.Errorf("starting bench/local: %w", err)
	}
	ended, lines := make(chan struct{}), make(chan string, 1)
	l.in, l.ended = in, ended
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n') // empty if the program ended
		lines <- line
		_ = command.Wait() // it was stopped, or it printed the reason
		close(ended)
	}()
	select {
	case <-ctx.Done():
		return fmt.Errorf("starting bench/local: %w", context.Cause(ctx))
	case line := <-lines:
		return l.use(line)
	}
}

// use reads how to reach the cluster.
func (l *Local) use(line string) error {
	var address Address
	if err := json.Unmarshal([]byte(line), &address); err != nil {
		return errors.New("bench/local ended before its cluster was ready: see its output above")
	}
	config, err := clientcmd.BuildConfigFromFlags("", address.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of bench/local: %w", err)
	}
	l.Pulsar = scenario.Pulsar{
		AdminURL: address.AdminURL, ServiceURL: address.ServiceURL, Namespace: "public/default",
		InCluster: scenario.Addresses{AdminURL: address.ProxyURL},
	}
	l.Kube, err = NewClient(config)
	return err
}

// Close stops the cluster and waits for its end.
func (l *Local) Close() {
	if l.in != nil {
		_ = l.in.Close() // it is closed only once
		<-l.ended
	}
	_ = os.RemoveAll(l.dir) // it is a temporary directory
}
