// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// FunctionCredentials says whether the adapter uses the credentials that Functions, Sinks, Sources and policies name.
type FunctionCredentials string

// The values of FunctionCredentials.
const (
	// UseFunctionCredentials reads the Secrets that they name, one by one.
	UseFunctionCredentials FunctionCredentials = "Use"
	// IgnoreFunctionCredentials presents the adapter's own credentials to every cluster, and never reads a Secret.
	IgnoreFunctionCredentials FunctionCredentials = "Ignore"
)

// OwnCredentials says which credentials the adapter itself has.
type OwnCredentials struct {
	// Authenticates is true when the adapter has credentials, TrustsMore when it has certificates to trust.
	Authenticates, TrustsMore bool
}

// PulsarSpec is how an object reaches its Pulsar; names are Function Mesh's PulsarMessaging.
type PulsarSpec struct {
	// PulsarConfig is the name of a ConfigMap in the object's Kubernetes namespace.
	PulsarConfig string `json:"pulsarConfig"`
	// AuthSecret and TLSSecret are names of Secrets there, with keys as environment variables.
	AuthSecret string `json:"authSecret"`
	TLSSecret  string `json:"tlsSecret"`

	AuthConfig *AuthConfig `json:"authConfig"`
	TLSConfig  *TLSConfig  `json:"tlsConfig"`
}

// AuthConfig is spec.pulsar.authConfig of Function Mesh.
type AuthConfig struct {
	OAuth2Config *OAuth2Config `json:"oauth2Config"`
	GenericAuth  *GenericAuth  `json:"genericAuth"`
}

// OAuth2Config is oauth2Config of an AuthConfig.
type OAuth2Config struct {
	Audience      string `json:"audience"`
	IssuerURL     string `json:"issuerUrl"`
	Scope         string `json:"scope"`
	KeySecretName string `json:"keySecretName"`
	KeySecretKey  string `json:"keySecretKey"`
}

// GenericAuth is genericAuth of an AuthConfig: a plugin with its parameters, as in client.conf.
type GenericAuth struct {
	Plugin     string `json:"clientAuthenticationPlugin"`
	Parameters string `json:"clientAuthenticationParameters"`
}

// TLSConfig is spec.pulsar.tlsConfig of Function Mesh.
type TLSConfig struct {
	Enabled              bool   `json:"enabled"`
	AllowInsecure        bool   `json:"allowInsecure"`
	HostnameVerification bool   `json:"hostnameVerification"`
	CertSecretName       string `json:"certSecretName"`
	CertSecretKey        string `json:"certSecretKey"`
}

// credentialPlan names the Secrets of credentials, before any is read. The zero value has none; equal plans are the
// same credentials.
type credentialPlan struct {
	// Namespace of the Secrets.
	Namespace string
	// At most one of the next three is set.
	AuthSecret string
	OAuth2     OAuth2Config
	Generic    GenericAuth
	// At most one of the next two is set, and only for https.
	TLSSecret string
	TLS       TLSConfig
}

// planCredentials takes what the policy names, else what the object names. Precedence within the object is Function
// Mesh's (controllers/spec/common.go): OAuth2Config, GenericAuth, authSecret; an enabled tlsConfig, tlsSecret. A plain
// connection needs no certificates.
func planCredentials(adminURL, namespace string, own *v1alpha1.PulsarConnection, p PulsarSpec) credentialPlan {
	plan := credentialPlan{Namespace: namespace}
	switch {
	case own != nil && own.AuthSecret != "":
		plan.AuthSecret = own.AuthSecret
	case p.AuthConfig != nil && p.AuthConfig.OAuth2Config != nil:
		plan.OAuth2 = *p.AuthConfig.OAuth2Config
	case p.AuthConfig != nil && p.AuthConfig.GenericAuth != nil:
		plan.Generic = *p.AuthConfig.GenericAuth
	default:
		plan.AuthSecret = p.AuthSecret
	}
	if strings.HasPrefix(adminURL, "https:") {
		switch {
		case own != nil && own.TLSConfig != nil:
			plan.TLS = TLSConfig{
				Enabled: true, HostnameVerification: true, CertSecretName: own.TLSConfig.CertSecretName,
				CertSecretKey: own.TLSConfig.CertSecretKey,
			}
		case p.TLSConfig != nil && p.TLSConfig.Enabled:
			plan.TLS = *p.TLSConfig
		default:
			plan.TLSSecret = p.TLSSecret
		}
	}
	if plan == (credentialPlan{Namespace: namespace}) {
		return credentialPlan{}
	}
	return plan
}

// authenticates reports whether the plan has more than certificates to trust.
func (p credentialPlan) authenticates() bool {
	return p.AuthSecret != "" || p.OAuth2 != (OAuth2Config{}) || p.Generic != (GenericAuth{})
}

// names lists the Secrets for a message.
func (p credentialPlan) names() string {
	var names []string
	for _, name := range []string{p.AuthSecret, p.OAuth2.KeySecretName, p.TLSSecret, p.TLS.CertSecretName} {
		if name != "" {
			names = append(names, name)
		}
	}
	if p.Generic != (GenericAuth{}) {
		names = append(names, "genericAuth")
	}
	return strings.Join(names, "+")
}

// WorkerCredentials says which credentials the controller presents to function workers to change what they run.
type WorkerCredentials string

// The values of WorkerCredentials.
const (
	// PolicyWorkerCredentials are those of the policy. The adapter's own are not presented: they may change functions of
	// many tenants, and a policy of any namespace may name any of these.
	PolicyWorkerCredentials WorkerCredentials = "Policy"
	// OwnWorkerCredentials are the adapter's own where the policy has none.
	OwnWorkerCredentials WorkerCredentials = "Own"
)

// workerRefusal returns why the adapter's own credentials are not presented to a function worker; empty when they are.
// When the adapter has none of its own either, requests are anonymous, and Pulsar decides what they may do.
func workerRefusal(config Config) func(ref v1alpha1.PulsarFunctionRef) string {
	return func(ref v1alpha1.PulsarFunctionRef) string {
		if !config.OwnCredentials.Authenticates || config.WorkerCredentials == OwnWorkerCredentials {
			return ""
		}
		const refused, allow = "the adapter does not use its own credentials to change what function workers run " +
			"(--worker-credentials=Policy)",
			"run the adapter with --worker-credentials=Own (in adapter.extraArgs of the chart), which lets a policy of any " +
				"namespace use them"
		if config.FunctionCredentials == IgnoreFunctionCredentials {
			return refused + ", and with --function-credentials=Ignore there are no others: " + allow
		}
		return fmt.Sprintf("%s: set spec.pulsar.authSecret to a Secret that the adapter may read, with credentials that may "+
			"change %s, or %s", refused, ref.FullName(), allow)
	}
}
