// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The actuators of a policy.
const (
	ActuatorHPA  = "HPA"
	ActuatorKEDA = "KEDA"
)

// What is too much to be meant.
const (
	maxReplicas   = 1000
	maxPartitions = 1000
	maxContenders = 10
	maxQueue      = 1_000_000
	maxStages     = 10
	maxName       = 20 // Pulsar and Kubernetes get longer names of it
	maxWatch      = 24 * time.Hour
)

// validate checks a scenario with its defaults.
func (s Scenario) validate() error {
	switch {
	case s.APIVersion != APIVersion || s.Kind != Kind:
		return fmt.Errorf("apiVersion and kind are %q and %q: they must be %s and %s", s.APIVersion, s.Kind, APIVersion, Kind)
	case s.Partitions < 0 || s.Partitions > maxPartitions:
		return fmt.Errorf("partitions is %d: it must be from 0 to %d", s.Partitions, maxPartitions)
	case *s.MinReplicas < 0 || *s.MinReplicas > s.MaxReplicas:
		return fmt.Errorf("minReplicas is %d: it must be from 0 to maxReplicas, %d", *s.MinReplicas, s.MaxReplicas)
	case s.MaxReplicas > maxReplicas:
		return fmt.Errorf("maxReplicas is %d: it must be at most %d", s.MaxReplicas, maxReplicas)
	case s.Order != InTurn && s.Order != SideBySide:
		return fmt.Errorf("order is %q: it must be %s or %s", s.Order, InTurn, SideBySide)
	}
	for _, check := range []func() error{
		func() error { return name("metadata.name", s.Metadata.Name) },
		s.Pulsar.validate, s.Messages.Validate, s.Function.validate, s.times, s.contenders, s.Limits.validate,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func name(field, value string) error {
	if len(value) > maxName || len(validation.IsDNS1123Label(value)) > 0 {
		return fmt.Errorf("%s is %q: it must be at most %d lower-case letters, digits and dashes", field, value, maxName)
	}
	return nil
}

func (s Scenario) times() error {
	for _, field := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"latencyObjective", s.LatencyObjective.Duration, time.Second, maxWatch}, // as in a policy
		{"watchAfter", s.WatchAfter.Duration, time.Second, maxWatch},
		{"function.serviceTime", s.Function.ServiceTime.Duration, 0, time.Hour},
		{"cooldownPeriod", s.CooldownPeriod.Duration, time.Second, maxWatch},
		{"local.startTime", s.Local.StartTime.Duration, 0, time.Hour},
		{"local.outage.at", s.Local.Outage.At.Duration, 0, maxWatch},
		{"local.outage.for", s.Local.Outage.For.Duration, 0, maxWatch},
		{"local.hpaSyncPeriod", s.Local.HPASyncPeriod.Duration, time.Second, time.Hour},
	} {
		if field.value < field.least || field.value > field.most {
			return fmt.Errorf("%s is %s: it must be from %s to %s", field.name, field.value, field.least, field.most)
		}
	}
	if s.CooldownPeriod.Duration%time.Second != 0 {
		return fmt.Errorf("cooldownPeriod is %s: it must be whole seconds", s.CooldownPeriod.Duration)
	}
	if s.Function.ServiceTime.Duration%time.Millisecond != 0 {
		return fmt.Errorf("function.serviceTime is %s: it must be whole milliseconds", s.Function.ServiceTime.Duration)
	}
	if outage := s.Local.Outage; outage.At.Duration > 0 && outage.For.Duration == 0 {
		return errors.New("local.outage.for is missing: set it, or remove local.outage")
	}
	return nil
}

// checkOutage checks that the outage begins while replicas are watched. A recording has the end of its load, so this is
// no part of validate.
func (s Scenario) checkOutage(load time.Duration) error {
	if at, end := s.Local.Outage.At.Duration, load+s.WatchAfter.Duration; at >= end {
		return fmt.Errorf("local.outage.at is %s: it must be before the end of the load and of watchAfter, %s", at, end)
	}
	return nil
}

func (p Pulsar) validate() error {
	for _, field := range []struct {
		name, value string
		schemes     []string
	}{
		{"pulsar.adminURL", p.AdminURL, []string{"http", "https"}},
		{"pulsar.serviceURL", p.ServiceURL, []string{"pulsar", "pulsar+ssl"}},
		{"pulsar.inCluster.adminURL", p.InCluster.AdminURL, []string{"http", "https"}},
		{"pulsar.inCluster.serviceURL", p.InCluster.ServiceURL, []string{"pulsar", "pulsar+ssl"}},
	} {
		if field.value == "" {
			continue
		}
		address, err := url.Parse(field.value)
		if err != nil || address.Host == "" || address.Scheme != field.schemes[0] && address.Scheme != field.schemes[1] {
			return fmt.Errorf("%s is %q: it must be %s://host:port", field.name, field.value,
				strings.Join(field.schemes, ":// or "))
		}
	}
	if !regexp.MustCompile(`^[-=:.\w]+/[-=:.\w]+$`).MatchString(p.Namespace) {
		return fmt.Errorf("pulsar.namespace is %q: it must be tenant/namespace", p.Namespace)
	}
	if p.AuthSecret != "" && !regexp.MustCompile(`^[-a-z0-9]+/[-.a-z0-9]+$`).MatchString(p.AuthSecret) {
		return fmt.Errorf("pulsar.authSecret is %q: it must be namespace/name of a Secret", p.AuthSecret)
	}
	return nil
}

func (f Function) validate() error {
	if f.Kind != KindFunction && f.Kind != KindDeployment {
		return fmt.Errorf("function.kind is %q: it must be %s or %s", f.Kind, KindFunction, KindDeployment)
	}
	if f.Stages < 1 || f.Stages > maxStages {
		return fmt.Errorf("function.stages is %d: it must be from 1 to %d", f.Stages, maxStages)
	}
	if f.ReceiverQueueSize < 0 || f.ReceiverQueueSize > maxQueue {
		return fmt.Errorf("function.receiverQueueSize is %d: it must be from 1 to %d", f.ReceiverQueueSize, maxQueue)
	}
	for _, field := range []struct{ name, value string }{{"function.cpu", f.CPU}, {"function.memory", f.Memory}} {
		if quantity, err := resource.ParseQuantity(field.value); err != nil || quantity.Sign() <= 0 {
			return fmt.Errorf("%s is %q: it must be a quantity such as 200m or 256Mi", field.name, field.value)
		}
	}
	return nil
}

func (s Scenario) contenders() error {
	if n := len(s.Contenders); n > maxContenders {
		return fmt.Errorf("contenders has %d elements: it must have at most %d", n, maxContenders)
	}
	seen := map[string]bool{}
	for i, c := range s.Contenders {
		field := fmt.Sprintf("contenders[%d]", i)
		if err := name(field+".name", c.Name); err != nil {
			return err
		}
		if seen[c.Name] {
			return fmt.Errorf("%s.name is %q a second time: names must differ", field, c.Name)
		}
		seen[c.Name] = true
		if err := c.validate(s.MaxReplicas, *s.MinReplicas); err != nil {
			return fmt.Errorf("%s (%s): %w", field, c.Name, err)
		}
	}
	return nil
}

func (c Contender) validate(most, least int32) error {
	kinds := 0
	for _, set := range []bool{c.Policy != nil, c.KEDAPulsar != nil, c.CPU != nil, c.Fixed != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("it has %d kinds: set exactly one of policy, kedaPulsar, cpu and fixed", kinds)
	}
	if c.Policy != nil || c.KEDAPulsar != nil {
		return c.validateBacklog()
	}
	const maxPercentage = 1000
	switch {
	case c.CPU != nil && (c.CPU.Percentage < 1 || c.CPU.Percentage > maxPercentage):
		return fmt.Errorf("cpu.percentage is %d: it must be from 1 to %d", c.CPU.Percentage, maxPercentage)
	case c.CPU != nil && least == 0:
		return fmt.Errorf("minReplicas is 0: a HorizontalPodAutoscaler on CPU needs at least 1")
	case c.Fixed != nil && (c.Fixed.Replicas < 1 || c.Fixed.Replicas > most):
		return fmt.Errorf("fixed.replicas is %d: it must be from 1 to maxReplicas, %d", c.Fixed.Replicas, most)
	}
	return nil
}

// validateBacklog checks the kinds that scale by the backlog.
func (c Contender) validateBacklog() error {
	const maxThreshold = 1_000_000_000
	modes := []string{"", "Auto", "Observe", "Off"}
	switch {
	case c.Policy != nil && c.Policy.Actuator != ActuatorHPA && c.Policy.Actuator != ActuatorKEDA:
		return fmt.Errorf("policy.actuator is %q: it must be %s or %s", c.Policy.Actuator, ActuatorHPA, ActuatorKEDA)
	case c.Policy != nil && !slices.Contains(modes, c.Policy.Forecast):
		return fmt.Errorf("policy.forecast is %q: it must be 'Auto', 'Observe' or 'Off'", c.Policy.Forecast)
	case c.KEDAPulsar != nil && (c.KEDAPulsar.Threshold < 1 || c.KEDAPulsar.Threshold > maxThreshold):
		return fmt.Errorf("kedaPulsar.threshold is %d: it must be from 1 to %d", c.KEDAPulsar.Threshold, maxThreshold)
	}
	return nil
}

func (l Limits) validate() error {
	switch {
	case l.MaxLateRatio != nil && !(*l.MaxLateRatio >= 0 && *l.MaxLateRatio <= 1):
		return fmt.Errorf("limits.maxLateRatio is %g: it must be from 0 to 1", *l.MaxLateRatio)
	case l.MaxP99 != nil && l.MaxP99.Duration <= 0:
		return fmt.Errorf("limits.maxP99 is %s: it must be above 0", l.MaxP99.Duration)
	case l.MaxReplicaHours != nil && !(*l.MaxReplicaHours >= 0):
		return fmt.Errorf("limits.maxReplicaHours is %g: it must be at least 0", *l.MaxReplicaHours)
	case l.MaxScaleChanges != nil && *l.MaxScaleChanges < 0:
		return fmt.Errorf("limits.maxScaleChanges is %d: it must be at least 0", *l.MaxScaleChanges)
	case l.MaxDuplicates != nil && *l.MaxDuplicates < 0:
		return fmt.Errorf("limits.maxDuplicates is %d: it must be at least 0", *l.MaxDuplicates)
	}
	return nil
}

// CheckContenders checks what a run of contenders needs, and one with a target leaves out.
func (s Scenario) CheckContenders() error {
	switch {
	case len(s.Contenders) == 0:
		return fmt.Errorf("contenders is empty: it must have from 1 to %d elements, unless --target is set", maxContenders)
	case s.Function.ServiceTime.Duration < time.Millisecond:
		return fmt.Errorf("function.serviceTime is %s: it must be from %s to %s", s.Function.ServiceTime.Duration,
			time.Millisecond, time.Hour)
	}
	return nil
}

// CheckPulsar checks what only a run on this machine may leave out.
func (s Scenario) CheckPulsar() error {
	if s.Pulsar.AdminURL == "" || s.Pulsar.ServiceURL == "" {
		return errors.New("pulsar.adminURL or pulsar.serviceURL is missing: set both, or run with --local")
	}
	return nil
}

// CheckFunction checks what contenders on a cluster need besides.
func (s Scenario) CheckFunction() error {
	switch {
	case s.Function.Image != "":
		return nil
	case s.Function.Kind == KindDeployment:
		return errors.New("function.image is missing: name the image of kubectl-pap, which consumes as a Deployment; " +
			"make image writes it to dist/images/kubectl-pap")
	default:
		return errors.New("function.image is missing: name an image with the example Function, or run with --local")
	}
}

// CheckCredentials checks that all contenders can show what Pulsar requires.
func (s Scenario) CheckCredentials(required bool) error {
	if required && s.Pulsar.AuthSecret == "" {
		return errors.New("pulsar.authSecret is missing beside credentials for Pulsar: " +
			"name a Secret for the pods of contenders")
	}
	for _, c := range s.Contenders {
		if s.Pulsar.AuthSecret != "" && c.KEDAPulsar != nil {
			return fmt.Errorf("contender %s has kedaPulsar, which cannot use pulsar.authSecret: remove one of them", c.Name)
		}
	}
	return nil
}

// CheckLocal checks what only a cluster has.
func (s Scenario) CheckLocal() error {
	if s.Function.Kind == KindDeployment {
		return errors.New("function.kind is Deployment, which needs a cluster: remove it, or run without --local")
	}
	return nil
}
