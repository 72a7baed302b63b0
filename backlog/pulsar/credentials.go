// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// AllowedIssuersFlag is the flag of the programs that fills Config.AllowedIssuers; messages name it.
const AllowedIssuersFlag = "--allowed-oauth2-issuers"

// credentialTimeout bounds what a CredentialSource takes.
const credentialTimeout = 5 * time.Second

// CredentialSource knows the credentials that a backlog.Cluster names by Access. It is asked for every call on Pulsar,
// so it must remember; its errors are shown to users. It may also have a method Doubt(access string): it is called when
// Pulsar has refused what was named so, and the source is asked again at once, for the credentials may have been
// changed.
type CredentialSource interface {
	Credentials(ctx context.Context, access string) (backlog.Credentials, error)
}

// doubter is an optional part of a CredentialSource.
type doubter interface {
	Doubt(access string)
}

// administering is another. Administered says that the name stands for what the program's administrator gave, and not
// for what a user's object names, and for which URLs, in the spelling of backlog.ParseAdminURL. Such credentials may be
// in files of the program, may ask any issuer, and may be shown at these URLs whether AllowedHosts has them or not.
type administering interface {
	Administered(access string) (urls []string, is bool)
}

// material is all that a session is made of, with nothing left to read. It is comparable.
type material struct {
	params

	// roots has the PEM certificates that sign the brokers'; empty for the system's.
	roots string
	// insecure leaves the brokers' certificate unchecked, anyName the name in it.
	insecure, anyName bool
	// named says that the credentials were named by a backlog.Cluster and are not the program's own.
	named bool
}

// credentials finds out what to show to a cluster.
type credentials struct {
	own own
	// source may be nil.
	source CredentialSource
	// issuers may be asked for tokens.
	issuers map[string]bool
}

func newCredentials(config Config) (*credentials, error) {
	mine, err := newOwn(config)
	if err != nil {
		return nil, err
	}
	c := &credentials{own: mine, source: config.Credentials, issuers: map[string]bool{}}
	for i, text := range config.AllowedIssuers {
		issuer, err := ParseIssuer(text)
		if err != nil {
			return nil, fmt.Errorf("allowedIssuers[%d] %w", i, err)
		}
		c.issuers[issuer] = true
	}
	if mine.params.issuer != "" {
		c.issuers[mine.params.issuer] = true
	}
	return c, nil
}

// of returns what the name stands for; the empty one is for the program's own.
func (c *credentials) of(ctx context.Context, access string) (material, error) {
	if access == "" {
		return c.own.material()
	}
	if c.source == nil {
		return material{}, errors.New("it needs credentials of its own, which this program does not look up")
	}
	ctx, cancel := context.WithTimeout(ctx, credentialTimeout)
	defer cancel()
	found, err := c.source.Credentials(ctx, access)
	if err != nil {
		return material{}, err
	}
	if _, is := c.administered(access); is {
		return c.given(found)
	}
	return c.named(found)
}

// administered says that the name stands for what the program's administrator gave, and for which URLs.
func (c *credentials) administered(access string) (urls []string, is bool) {
	a, ok := c.source.(administering)
	if !ok || access == "" {
		return nil, false
	}
	return a.Administered(access)
}

// administeredFor says that what the name stands for was given for that URL.
func (c *credentials) administeredFor(access string, u *url.URL) bool {
	urls, is := c.administered(access)
	if !is {
		return false
	}
	spelled, err := backlog.ParseAdminURL(u.Scheme + "://" + u.Host)
	return err == nil && slices.Contains(urls, spelled)
}

// given decodes credentials that the program's administrator named, and reads the files that they name.
func (c *credentials) given(found backlog.Credentials) (material, error) {
	decoded, err := decodeParams(found.Plugin, found.Params)
	if err == nil {
		decoded, err = decoded.read()
	}
	if err != nil {
		return material{}, err
	}
	return materialOf(decoded, found), nil
}

// named decodes credentials that were named by an object of a user, who must not make this program read its own files
// or call an issuer that nobody has allowed.
func (c *credentials) named(found backlog.Credentials) (material, error) {
	decoded, err := decodeParams(found.Plugin, found.Params)
	if err != nil {
		return material{}, err
	}
	if key, path := decoded.file(); path != "" {
		return material{},
			backlog.Because(backlog.ErrUnsupported,
				"%s names a file inside the function's pod, which the adapter cannot read: %s: "+
					"put its content into the Secret, or name a Secret for the adapter in the policy", key, backlog.Quote(path))
	}
	if decoded.issuer != "" && !c.issuers[decoded.issuer] {
		return material{}, backlog.Because(backlog.ErrForbidden, "%s is not an allowed OAuth2 issuer: add it to %s",
			backlog.Quote(decoded.issuer), AllowedIssuersFlag)
	}
	return materialOf(decoded, found), nil
}

func materialOf(decoded params, found backlog.Credentials) material {
	return material{
		params: decoded, roots: found.TrustCerts, insecure: found.AllowInsecureConnection,
		anyName: found.SkipHostnameVerification,
		named:   true,
	}
}

// doubt tells the source that Pulsar refused what was named so.
func (c *credentials) doubt(access string) {
	if d, ok := c.source.(doubter); ok && access != "" {
		d.Doubt(access)
	}
}

// own are the program's own credentials, which may be in files.
type own struct {
	// params are what the configuration says; without a file of parameters they are complete but for what they name.
	params params
	// plugin and paramsFile are set when the parameters are in a file.
	plugin, paramsFile string
	roots              *caFile
}

func newOwn(config Config) (own, error) {
	o := own{plugin: config.AuthPlugin, paramsFile: config.AuthParamsFile}
	var err error
	switch {
	case config.TokenFile != "":
		o.params = params{method: methodToken, token: reference{path: config.TokenFile}}
	case config.Token != "":
		o.params.method = methodToken
		if o.params.token.content, err = cleanToken(config.Token); err != nil {
			err = fmt.Errorf("token: %w", err)
		}
	case config.AuthParamsFile != "":
		o.params, err = o.decodeFile()
	default:
		o.params, err = decodeParams(config.AuthPlugin, config.AuthParams)
	}
	if err != nil {
		return own{}, err
	}
	o.roots, err = newCAFile(config.CAFile)
	return o, err
}

// decodeFile reads the file of parameters.
func (o own) decodeFile() (params, error) {
	text, err := readFile(o.paramsFile)
	if err != nil {
		return params{}, fmt.Errorf("authParamsFile %s: %w", o.paramsFile, err)
	}
	decoded, err := decodeParams(o.plugin, text)
	if err != nil {
		return params{}, fmt.Errorf("authParamsFile %s: %w", o.paramsFile, err)
	}
	return decoded, nil
}

func (o own) material() (material, error) {
	decoded, err := o.params, error(nil)
	if o.paramsFile != "" {
		decoded, err = o.decodeFile()
	}
	if err == nil {
		decoded, err = decoded.read()
	}
	if err != nil {
		return material{}, err
	}
	return material{params: decoded, roots: o.roots.pem()}, nil
}
