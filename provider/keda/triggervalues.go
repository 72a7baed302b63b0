// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// errFormat means that a value does not match its key.
var errFormat = errors.New("out of bounds")

const (
	defaultTenant, defaultNamespace = "public", "default"

	// mostRate is 10^12.
	mostRate = "1T"
)

func decodeTarget(t *Trigger, value string) error {
	kind, name, _ := strings.Cut(value, "/")
	if len(name) > mostName {
		return errFormat
	}
	t.Subject.Target = Target{Kind: kind, Name: name}
	return nil
}

func decodeFunction(t *Trigger, value string) error {
	return decodeComponent(t, function.KindFunction, value)
}

func decodeSink(t *Trigger, value string) error { return decodeComponent(t, function.KindSink, value) }

func decodeComponent(t *Trigger, kind function.Kind, value string) error {
	parts := strings.Split(value, "/")
	if len(parts) == 1 {
		parts = []string{defaultTenant, defaultNamespace, value}
	}
	if slices.ContainsFunc(parts, isStep) ||
		slices.ContainsFunc(parts, func(part string) bool { return len(part) > mostName }) {
		return errFormat
	}
	t.Subject.Component = Component{Kind: kind, Tenant: parts[0], Namespace: parts[1], Name: parts[2]}
	return nil
}

// isStep reports whether a part of a name would change the path of a URL.
func isStep(part string) bool { return part == "." || part == ".." }

func decodeTopics(t *Trigger, value string) error {
	names := strings.Split(value, ",")
	if len(names) > mostTopics {
		return fmt.Errorf("has %d topics, must have at most %d: use another trigger for the rest", len(names), mostTopics)
	}
	for i, name := range names {
		names[i] = strings.Trim(name, " ")
		if slices.ContainsFunc(strings.Split(names[i], "/"), isStep) {
			return errFormat
		}
	}
	t.Subject.Topics = strings.Join(backlog.NewSubscription(backlog.Cluster{}, "", names...).Topics, ",")
	return nil
}

// decodeThreshold decodes whole numbers: their pattern is exact.
func decodeThreshold(t *Trigger, value string) (err error) {
	t.Threshold, err = strconv.ParseFloat(value, 64)
	return err
}

func decodeActivation(t *Trigger, value string) (err error) {
	t.ActivationMessages, err = strconv.ParseInt(value, 10, 64)
	return err
}

func decodeRate(t *Trigger, value string) error {
	quantity, err := resource.ParseQuantity(value)
	if err != nil || quantity.Sign() <= 0 || quantity.Cmp(resource.MustParse(mostRate)) > 0 {
		return errFormat
	}
	// Exact decimals: 300m is 0.3 and not 0.30000000000000004.
	t.Threshold, err = strconv.ParseFloat(quantity.AsDec().String(), 64)
	return err
}
