// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe is a probe of a container with its results. The zero value is no probe, which always succeeds.
type probe struct {
	spec      *corev1.Probe
	successes int32
	failures  int32
	next      time.Time
}

func newProbe(spec *corev1.Probe, started time.Time) probe {
	p := probe{spec: spec}
	if spec != nil {
		p.next = started.Add(time.Duration(spec.InitialDelaySeconds) * time.Second)
	}
	return p
}

// succeeds becomes true after successThreshold successes in a row, and false after failureThreshold failures in a row.
func (p probe) succeeds() bool {
	return p.spec == nil || p.successes >= p.spec.SuccessThreshold
}

// fails reports failureThreshold failures in a row.
func (p probe) fails() bool { return p.spec != nil && p.failures >= p.spec.FailureThreshold }

// after returns the probe with one more result.
func (p probe) after(now time.Time, err error) probe {
	p.next = now.Add(time.Duration(p.spec.PeriodSeconds) * time.Second)
	if err == nil {
		p.successes, p.failures = p.successes+1, 0
		return p
	}
	if p.failures++; p.failures >= p.spec.FailureThreshold {
		p.successes = 0
	}
	return p
}

func (p probe) due(now time.Time) bool { return p.spec != nil && !now.Before(p.next) }

// lookEvery is the interval at which due probes are made.
const lookEvery = 200 * time.Millisecond

// probes are those of one run of a container.
type probes struct {
	container                    corev1.Container
	startup, readiness, liveness probe
}

func newProbes(c corev1.Container, started time.Time) probes {
	return probes{
		container: c, startup: newProbe(c.StartupProbe, started), readiness: newProbe(c.ReadinessProbe, started),
		liveness: newProbe(c.LivenessProbe, started),
	}
}

func (p probes) none() bool {
	return p.startup.spec == nil && p.readiness.spec == nil && p.liveness.spec == nil
}

func (p probes) ready() bool { return p.startup.succeeds() && p.readiness.succeeds() }

// run makes due probes one after another, and passes each result on. It returns true when the startup or liveness probe
// has failed, and false when ctx ends.
func (p probes) run(ctx context.Context, address string, result func(probes)) (failed bool) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		due := []*probe{&p.readiness, &p.liveness}
		if !p.startup.succeeds() {
			due = []*probe{&p.startup}
		}
		for _, one := range due {
			if one.due(time.Now()) {
				*one = one.after(time.Now(), p.check(ctx, one.spec, address))
			}
		}
		if ctx.Err() != nil {
			return false
		}
		result(p)
		if p.startup.fails() || p.startup.succeeds() && p.liveness.fails() {
			return true
		}
	}
}

// check makes one request to the container at the address.
func (p probes) check(ctx context.Context, spec *corev1.Probe, address string) error {
	if spec.HTTPGet == nil {
		return errors.New("this package has httpGet probes only")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(spec.TimeoutSeconds)*time.Second)
	defer cancel()
	port, err := portOf(p.container, spec.HTTPGet.Port)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(cmp.Or(spec.HTTPGet.Scheme, corev1.URISchemeHTTP)))
	return checkHTTP(ctx, scheme+"://"+net.JoinHostPort(address, port)+spec.HTTPGet.Path)
}

func portOf(c corev1.Container, port intstr.IntOrString) (string, error) {
	if port.Type == intstr.Int {
		return port.String(), nil
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return strconv.Itoa(int(p.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("couldn't find port %s of container %s", port.StrVal, c.Name)
}

// checkHTTP verifies no certificate, like a kubelet.
func checkHTTP(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // G402: as a kubelet does
		DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", response.StatusCode)
	}
	return nil
}
