// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"crypto/sha1" //nolint:gosec // Pulsar's choice for names, which protect nothing
	"encoding/hex"
	"strings"
)

// workerStatefulSet is the name of the StatefulSet that Pulsar's function worker makes on Kubernetes for
// tenant/namespace/name, without a jobName of its own.
//
// Source: org.apache.pulsar.functions.runtime.kubernetes.KubernetesRuntime.createJobName.
func workerStatefulSet(tenant, namespace, name string) string {
	base := tenant + "-" + namespace + "-" + name
	raw := "pf-" + base
	valid := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(raw))
	if valid == raw {
		return raw
	}
	hash := sha1.Sum([]byte(base)) //nolint:gosec // as above
	return valid + "-" + hex.EncodeToString(hash[:])[:8]
}
