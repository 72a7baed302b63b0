// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

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
	Resolve(ctx context.Context, connection *v1alpha1.PulsarConnection, plan credentialPlan) (
		access, invalid string, err error)
	// Invalidate has what the name stands for read again soon.
	Invalidate(access string)
}

// workloadPulsar is how an object reaches its Pulsar; names are Function Mesh's PulsarMessaging.
type workloadPulsar struct {
	// PulsarConfig is the name of a ConfigMap in the object's Kubernetes namespace.
	PulsarConfig string `json:"pulsarConfig"`
	// AuthSecret and TLSSecret are names of Secrets there, with keys as environment variables.
	AuthSecret string `json:"authSecret"`
	TLSSecret  string `json:"tlsSecret"`

	AuthConfig *workloadAuth `json:"authConfig"`
	TLSConfig  *workloadTLS  `json:"tlsConfig"`
}

type workloadAuth struct {
	OAuth2Config *oauth2Config `json:"oauth2Config"`
	GenericAuth  *genericAuth  `json:"genericAuth"`
}

type oauth2Config struct {
	Audience      string `json:"audience"`
	IssuerURL     string `json:"issuerUrl"`
	Scope         string `json:"scope"`
	KeySecretName string `json:"keySecretName"`
	KeySecretKey  string `json:"keySecretKey"`
}

type genericAuth struct {
	Plugin     string `json:"clientAuthenticationPlugin"`
	Parameters string `json:"clientAuthenticationParameters"`
}

type workloadTLS struct {
	Enabled              bool   `json:"enabled"`
	AllowInsecure        bool   `json:"allowInsecure"`
	HostnameVerification bool   `json:"hostnameVerification"`
	CertSecretName       string `json:"certSecretName"`
	CertSecretKey        string `json:"certSecretKey"`
}

// credentialPlan says where credentials stand, before anything is read. The zero value is for none; equal plans are for
// the same credentials.
type credentialPlan struct {
	// Namespace of the Secrets.
	Namespace string
	// At most one of the next three is set.
	AuthSecret string
	OAuth2     oauth2Config
	Generic    genericAuth
	// At most one of the next two is set, and only for https.
	TLSSecret string
	TLS       workloadTLS
}

// planCredentials puts together what the policy says and, where it does not, what the object says. Precedence within
// the object is Function Mesh's (controllers/spec/common.go): oauth2Config, genericAuth, authSecret; an enabled
// tlsConfig, tlsSecret. Nothing about certificates matters to a plain connection.
func planCredentials(adminURL, namespace string, own *v1alpha1.PulsarConnection, p workloadPulsar) credentialPlan {
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
			plan.TLS = workloadTLS{
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

// authenticates says whether there is more than certificates to trust.
func (p credentialPlan) authenticates() bool {
	return p.AuthSecret != "" || p.OAuth2 != (oauth2Config{}) || p.Generic != (genericAuth{})
}

// names are the Secrets that are read, for a person.
func (p credentialPlan) names() string {
	var names []string
	for _, name := range []string{p.AuthSecret, p.OAuth2.KeySecretName, p.TLSSecret, p.TLS.CertSecretName} {
		if name != "" {
			names = append(names, name)
		}
	}
	if p.Generic != (genericAuth{}) {
		names = append(names, "genericAuth")
	}
	return strings.Join(names, "+")
}
