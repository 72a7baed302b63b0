// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Credentials resolves the credentials that backlog.Cluster.Access names. It is safe for concurrent use.
type Credentials struct {
	mode   FunctionCredentials
	own    OwnCredentials
	reader client.Reader
	now    func() time.Time
	// secrets has single keys of single Secrets, and nothing else of them.
	secrets *Lookups[secretKey, secretContent]
	// salt protects inline credentials: the name of the access does not reveal them.
	salt []byte
	// plans are those that were resolved lately, by name.
	plans *Lookups[string, credentialPlan]
}

func newCredentials(config Config) *Credentials {
	return &Credentials{
		mode: config.FunctionCredentials, own: config.OwnCredentials, reader: config.Objects, now: config.Now,
		salt:    []byte(rand.Text()),
		secrets: NewLookups[secretKey, secretContent](config.Now, lookupTTL),
		plans:   NewLookups[string, credentialPlan](config.Now, lookupTTL),
	}
}

// resolve returns the name of a plan's credentials, empty for the adapter's own. A plan.Violation is what the user has
// to fix, any other is worth a retry.
func (c *Credentials) resolve(ctx context.Context, connection *v1alpha1.PulsarConnection, plan credentialPlan) (
	access string, err error,
) {
	if c.mode == IgnoreFunctionCredentials {
		if connection != nil && (connection.AuthSecret != "" || connection.TLSConfig != nil) {
			return "", Invalidf("the policy's spec.pulsar has credentials, and the adapter runs with " +
				"--function-credentials=Ignore (in adapter.extraArgs of the chart): remove authSecret and tlsConfig to use the " +
				"adapter's own")
		}
		return "", nil
	}
	// A plan with certificates alone yields to the adapter's credentials, with the certificates that they trust.
	if plan == (credentialPlan{}) || (!plan.authenticates() && c.own.Authenticates) {
		return "", nil
	}
	found, err := c.read(ctx, plan)
	switch {
	case c.replaces(plan, found, err):
		return "", nil
	case err != nil:
		return "", err
	}
	access = c.name(plan)
	c.plans.Put(access, plan, c.now(), lookupTTL)
	return access, nil
}

// replaces reports whether the adapter's own credentials replace those of a plan, which were read with this error.
func (c *Credentials) replaces(plan credentialPlan, found backlog.Credentials, err error) bool {
	if err == nil {
		return found.Plugin == "" && c.own.Authenticates
	}
	var unreadable unreadableError
	return errors.As(err, &unreadable) && (c.own.Authenticates || (c.own.TrustsMore && !plan.authenticates()))
}

// name of the plan: the same for all objects with the same credentials. It does not reveal them.
func (c *Credentials) name(plan credentialPlan) string {
	hash := hmac.New(sha256.New, c.salt)
	_, _ = fmt.Fprintf(hash, "%#v", plan) // %#v quotes texts, and a hash.Hash never fails
	return plan.Namespace + "/" + plan.names() + "#" + hex.EncodeToString(hash.Sum(nil)[:8])
}

// Credentials returns the credentials of a name, at most a minute old. Errors name the fix.
func (c *Credentials) Credentials(ctx context.Context, access string) (backlog.Credentials, error) {
	plan, known := c.plans.Last(access)
	if !known {
		return backlog.Credentials{},
			fmt.Errorf("%w: the adapter reads the credentials %s again within seconds", backlog.ErrNoData, access)
	}
	found, err := c.read(ctx, plan)
	switch {
	case IsInvalid(err):
		return backlog.Credentials{}, fmt.Errorf("%w: %s", backlog.ErrUnauthenticated, err.Error())
	case err != nil: // the read of Kubernetes failed; Pulsar refused nothing
		return backlog.Credentials{}, fmt.Errorf("%w: %w", backlog.ErrNoData, err)
	default:
		return found, nil
	}
}

// Invalidate marks the credentials as refused by Pulsar, so that a rotated Secret is noticed within seconds.
func (c *Credentials) Invalidate(access string) {
	plan, known := c.plans.Last(access)
	if !known {
		return
	}
	for _, read := range secretReads(plan) {
		c.secrets.Invalidate(read)
	}
}

// The Secrets of a plan.
const (
	readAuth = iota
	readOAuth2
	readTLS
	readCertificates
)

// secretReads are the Secrets of a plan, without a name where it has none.
func secretReads(p credentialPlan) [4]secretKey {
	return [...]secretKey{
		readAuth: {
			namespace: p.Namespace, name: p.AuthSecret, field: "authSecret",
			keys: [3]string{"clientAuthenticationPlugin", "clientAuthenticationParameters"},
		},
		readOAuth2: {
			namespace: p.Namespace, name: p.OAuth2.KeySecretName, field: "authConfig.oauth2Config.keySecretName",
			keys: [3]string{p.OAuth2.KeySecretKey}, required: true,
		},
		readTLS: {
			namespace: p.Namespace, name: p.TLSSecret, field: "tlsSecret",
			keys: [3]string{"tlsAllowInsecureConnection", "tlsHostnameVerificationEnable", "tlsTrustCertsFilePath"},
		},
		readCertificates: {
			namespace: p.Namespace, name: p.TLS.CertSecretName, field: "tlsConfig.certSecretName",
			keys: [3]string{p.TLS.CertSecretKey}, required: true,
		},
	}
}

func (c *Credentials) read(ctx context.Context, plan credentialPlan) (found backlog.Credentials, err error) {
	var contents [4]secretContent
	for i, read := range secretReads(plan) {
		if read.name == "" {
			continue
		}
		if contents[i], err = c.secrets.Find(ctx, read, c.get); err != nil {
			return backlog.Credentials{}, err
		}
	}
	switch auth := contents[readAuth]; {
	case plan.AuthSecret != "":
		found.Plugin, found.Params = auth[0], auth[1]
	case plan.OAuth2 != (OAuth2Config{}):
		found.Plugin = "oauth2"
		if found.Params, err = oauth2Params(plan.OAuth2, contents[readOAuth2][0]); err != nil {
			return backlog.Credentials{}, err
		}
	default:
		found.Plugin, found.Params = plan.Generic.Plugin, plan.Generic.Parameters
	}
	if err := inPodFile(found.Plugin, found.Params); err != nil {
		return backlog.Credentials{}, err
	}
	switch tls := contents[readTLS]; {
	case plan.TLS.Enabled:
		found.AllowInsecureConnection = plan.TLS.AllowInsecure
		found.SkipHostnameVerification = !plan.TLS.HostnameVerification
		found.TrustCerts = contents[readCertificates][0]
	case plan.TLSSecret != "":
		found.AllowInsecureConnection = tls[0] == "true"
		found.SkipHostnameVerification = tls[1] == "false"
		if path := tls[2]; path != "" && !found.AllowInsecureConnection {
			return backlog.Credentials{}, unreadable("the certificates to trust are in %s (tlsTrustCertsFilePath) inside of "+
				"the pods, which the adapter cannot read: set spec.pulsar.tlsConfig of the policy to a Secret with them, or "+
				"--pulsar-ca-file of the adapter (value pulsar.ca of the chart)", path)
		}
	}
	return found, nil
}

// oauth2Params are authParams of Pulsar's plugin, with the key file as Function Mesh would mount it.
func oauth2Params(config OAuth2Config, keyFile string) (string, error) {
	text, err := json.Marshal(struct {
		Type       string `json:"type"`
		IssuerURL  string `json:"issuerUrl"`
		PrivateKey string `json:"privateKey"`
		Audience   string `json:"audience,omitempty"`
		Scope      string `json:"scope,omitempty"`
	}{
		Type: "client_credentials", IssuerURL: config.IssuerURL, Audience: config.Audience, Scope: config.Scope,
		PrivateKey: "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(keyFile)),
	})
	if err != nil {
		return "", fmt.Errorf("writing oauth2 parameters: %w", err)
	}
	return string(text), nil
}

// forget drops cached values that no caller has requested lately, above all Secrets.
func (c *Credentials) forget(now time.Time) {
	c.plans.Forget(now)
	c.secrets.Forget(now)
}
