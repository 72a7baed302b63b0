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
	if valid := validName(raw); valid != raw {
		return valid + "-" + shortHash(base)
	}
	return raw
}

// validName replaces what no name of a pod may have.
func validName(name string) string {
	return strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// shortHash keeps apart what validName makes alike.
func shortHash(text string) string {
	hash := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(hash[:])[:8]
}
