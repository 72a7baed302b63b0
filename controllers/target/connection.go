// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// FunctionCredentials says what becomes of credentials that Functions, Sinks, Sources and policies name.
type FunctionCredentials string

// The two ways.
const (
	// UseFunctionCredentials reads the Secrets that they name, one by one.
	UseFunctionCredentials FunctionCredentials = "Use"
	// IgnoreFunctionCredentials shows the adapter's own credentials to every cluster, and never reads a Secret.
	IgnoreFunctionCredentials FunctionCredentials = "Ignore"
)

// OwnCredentials says what the adapter has itself, for what cannot be read.
type OwnCredentials struct {
	// Authenticates is true when it can show who it is, TrustsMore when it was given certificates to trust.
	Authenticates, TrustsMore bool
}

// CredentialKeeper keeps the credentials that objects and policies name.
type CredentialKeeper interface {
	// Resolve returns the name of a plan's credentials, empty for the adapter's own, or why there are none and what to do
	// about it. An error is worth a retry.
	Resolve(ctx context.Context, connection *v1alpha1.PulsarConnection, plan CredentialPlan) (
		access, invalid string, err error)
	// Invalidate has what the name stands for read again soon.
	Invalidate(access string)
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

// CredentialPlan says where credentials stand, before anything is read. The zero value is for none; equal plans are for
// the same credentials.
type CredentialPlan struct {
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

// PlanCredentials puts together what the policy says and, where it does not, what the object says. Precedence within
// the object is Function Mesh's (controllers/spec/common.go): OAuth2Config, GenericAuth, authSecret; an enabled
// tlsConfig, tlsSecret. Nothing about certificates matters to a plain connection.
func PlanCredentials(adminURL, namespace string, own *v1alpha1.PulsarConnection, p PulsarSpec) CredentialPlan {
	plan := CredentialPlan{Namespace: namespace}
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
	if plan == (CredentialPlan{Namespace: namespace}) {
		return CredentialPlan{}
	}
	return plan
}

// Authenticates says whether there is more than certificates to trust.
func (p CredentialPlan) Authenticates() bool {
	return p.AuthSecret != "" || p.OAuth2 != (OAuth2Config{}) || p.Generic != (GenericAuth{})
}

// Names are the Secrets that are read, for a person.
func (p CredentialPlan) Names() string {
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
