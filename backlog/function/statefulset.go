// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"crypto/sha1" //nolint:gosec // Pulsar's choice for names, without security
	"encoding/hex"
	"strings"
)

// StatefulSetName is the name of the StatefulSet that Pulsar's function worker creates on Kubernetes for
// tenant/namespace/name, without a jobName of its own.
//
// Source: org.apache.pulsar.functions.runtime.kubernetes.KubernetesRuntime.createJobName.
func StatefulSetName(tenant, namespace, name string) string {
	base := tenant + "-" + namespace + "-" + name
	raw := "pf-" + base
	if valid := validName(raw); valid != raw {
		return valid + "-" + shortHash(base)
	}
	return raw
}

// RunsAs reports whether the worker gives this name to the StatefulSet of the function. With a jobName, which only some
// workers support, the name is that of the function's own options or the part before the hash.
//
// Source: Pulsar's KubernetesRuntime.createJobName and BasicKubernetesManifestCustomizer.
func (f Function) RunsAs(statefulSet string) bool {
	if statefulSet == StatefulSetName(f.Tenant, f.Namespace, f.Name) ||
		f.JobName != "" && statefulSet == f.jobStatefulSet(f.JobName) {
		return true
	}
	at := strings.LastIndexByte(statefulSet, '-')
	return at > 0 && statefulSet == f.jobStatefulSet(statefulSet[:at])
}

func (f Function) jobStatefulSet(jobName string) string {
	return validName(jobName) + "-" + shortHash(strings.Join([]string{jobName, f.Tenant, f.Namespace, f.Name}, "-"))
}

// validName replaces characters that are invalid in the name of a pod.
func validName(name string) string {
	return strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// shortHash distinguishes names that validName maps to the same name.
func shortHash(text string) string {
	hash := sha1.Sum([]byte(text))
	return hex.EncodeToString(hash[:])[:8]
}
