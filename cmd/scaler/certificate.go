// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/serving"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

// Values of --serving-certificate.
const (
	certificateFiles = "Files"
	certificateSelf  = "Self"
)

// CertificateOptions configure TLS between KEDA and the scaler. All fields but Mode are for certificateSelf.
type CertificateOptions struct {
	Mode     string
	Secret   string
	Host     string
	Lifetime time.Duration
	// Client is the Secret for KEDA, as namespace/name.
	Client string
	// Owner is the ClusterRole that owns both Secrets; empty for none.
	Owner string
}

func newCertificateOptions() CertificateOptions {
	return CertificateOptions{
		Mode: certificateFiles, Secret: "scaler-serving", Lifetime: 365 * 24 * time.Hour,
		Client: "keda/pulsar-autoscaler-scaler",
	}
}

func (o *Options) addCertificateFlags(fs *pflag.FlagSet) {
	c := &o.Certificate
	fs.StringVar(&c.Mode, "serving-certificate", c.Mode,
		"Files serves --tls-cert-file. Self creates an authority and certificates, renews them, and answers only KEDA, with "+
			"the certificate in --keda-certificate-secret.")
	fs.StringVar(&c.Secret, "serving-certificate-secret", c.Secret,
		"With Self: Secret of authority and certificate, in the namespace of the Lease.")
	fs.StringVar(&c.Host, "serving-certificate-host", c.Host,
		"With Self: host that triggers name in scalerAddress; default: scaler.NAMESPACE.svc, with the namespace of the "+
			"Lease.")
	fs.DurationVar(&c.Lifetime, "serving-certificate-lifetime", c.Lifetime,
		"With Self: how long a certificate is valid, from 1m to 8760h. It is renewed after two thirds of that; the "+
			"authority and KEDA's certificate are valid for four times as long.")
	fs.StringVar(&c.Client, "keda-certificate-secret", c.Client,
		"With Self: namespace/name of the Secret that gets KEDA's certificate and the authority, for a "+
			"ClusterTriggerAuthentication. The namespace is that of KEDA.")
	fs.StringVar(&c.Owner, "serving-certificate-owner", c.Owner,
		"With Self: ClusterRole that owns both Secrets. They are deleted with it; default: none.")
}

func (o *Options) checkCertificate() []error {
	var p flags.Problems
	c := o.Certificate
	p.OneOf("serving-certificate", c.Mode, certificateFiles, certificateSelf)
	p.Name("serving-certificate-secret", c.Secret, validation.IsDNS1123Subdomain)
	flags.Between(&p, "serving-certificate-lifetime", c.Lifetime, time.Minute, 365*24*time.Hour)
	if c.Host != "" {
		p.Name("serving-certificate-host", c.Host, validation.IsDNS1123Subdomain)
	}
	client := c.client()
	if validation.IsDNS1123Label(client.Namespace) != nil || validation.IsDNS1123Subdomain(client.Name) != nil {
		p.Add("--keda-certificate-secret is %q: it must be namespace/name", c.Client)
	}
	if c.Mode == certificateSelf && (o.TLS != keda.TLSFiles{}) {
		p.Add("--serving-certificate is Self, --tls-cert-file is %q and --client-ca-file is %q: leave the files out",
			o.TLS.Certificate, o.TLS.ClientCA)
	}
	if c.Mode != certificateSelf && c.Owner != "" {
		p.Add("--serving-certificate-owner is %q and --serving-certificate is %s: leave the owner out, or set Self",
			c.Owner, c.Mode)
	}
	return p
}

func (c CertificateOptions) client() types.NamespacedName {
	namespace, name, _ := strings.Cut(c.Client, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// setup returns nil if the certificate is in files, or without TLS.
func (c CertificateOptions) setup(mgr ctrl.Manager, namespace string) (*serving.Certificate, error) {
	if c.Mode == certificateFiles {
		return nil, nil //nolint:nilnil // no certificate of ours is no failure
	}
	return serving.Setup(mgr, serving.Config{
		Secret: types.NamespacedName{Namespace: namespace, Name: c.Secret},
		Host:   cmp.Or(c.Host, "scaler."+namespace+".svc"), Lifetime: c.Lifetime,
		Client: serving.Client{Secret: c.client(), Owner: c.Owner}, Ready: func() error { return nil },
	})
}

func content(certificate *serving.Certificate) (keda.TLSContent, error) {
	shown, key := certificate.CurrentCertKeyContent()
	return keda.TLSContent{
		Certificate: shown, Key: key, VerifyClients: true, ClientCA: certificate.Authorities(),
	}, nil
}

// tls returns a reader of the TLS content; nil without TLS.
func (s *scaler) tls() func() (keda.TLSContent, error) {
	switch {
	case s.certificate != nil:
		return func() (keda.TLSContent, error) { return content(s.certificate) }
	case s.options.TLS.Certificate != "":
		return s.options.TLS.Read
	default:
		return nil
	}
}

// awaitCertificate waits until there is a certificate, unless none is needed; false when the context ends.
func (s *scaler) awaitCertificate(ctx context.Context) bool {
	const often = 100 * time.Millisecond
	return wait.PollUntilContextCancel(ctx, often, true, func(context.Context) (bool, error) {
		return s.certificate == nil || s.certificate.Ready() == nil, nil
	}) == nil
}
