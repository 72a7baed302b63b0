// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// Bounds of the file of connections.
const (
	maxConnections = 1000
	maxNamespaces  = 1000
)

// connection is one entry of the file: a Pulsar cluster, how to reach it, and which namespaces may use it.
type connection struct {
	// Name by which triggers refer to it.
	Name string `json:"name"`
	// AdminURL of the brokers, and WorkerURL of a function worker that runs separately.
	AdminURL  string `json:"adminURL"`
	WorkerURL string `json:"workerURL,omitempty"`
	// TokenFile, or AuthPlugin with AuthParamsFile, like the flags of the same name: absolute paths of files that are read
	// at each use.
	TokenFile      string `json:"tokenFile,omitempty"`
	AuthPlugin     string `json:"authPlugin,omitempty"`
	AuthParamsFile string `json:"authParamsFile,omitempty"`
	// CAFile has the PEM certificates that sign the brokers'; empty for the system's.
	CAFile                  string `json:"caFile,omitempty"`
	AllowInsecureConnection bool   `json:"allowInsecureConnection,omitempty"`
	// TLSHostnameVerification is true by default.
	TLSHostnameVerification *bool `json:"tlsHostnameVerification,omitempty"`
	// Namespaces of the ScaledObjects that may use it; empty for all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// serves reports whether ScaledObjects of the namespace may use it.
func (c connection) serves(namespace string) bool {
	return len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, namespace)
}

// urls receive its credentials.
func (c connection) urls() []string {
	if c.WorkerURL == "" {
		return []string{c.AdminURL}
	}
	return []string{c.AdminURL, c.WorkerURL}
}

// access names its credentials. It includes the URLs, so that credentials are not sent to a URL that the name had
// before the file changed. No namespace contains an @, so no Secret of a user has such a name.
func (c connection) access() string { return accessPrefix + c.Name + "@" + strings.Join(c.urls(), ",") }

const accessPrefix = "connection/"

// decode decodes the file: connections by name, with URLs as backlog.ParseAdminURL writes them. The error has all
// problems, with key, value and bound, and shows no URL, because it may contain credentials.
func decode(text []byte) (map[string]connection, error) {
	var file struct {
		Connections []connection `json:"connections"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf(
			"it must be YAML with a list named connections, with entries of name, adminURL, workerURL, tokenFile, "+
				"authPlugin, authParamsFile, caFile, allowInsecureConnection, tlsHostnameVerification and namespaces: %w", err)
	}
	if len(file.Connections) > maxConnections {
		return nil, fmt.Errorf("connections has %d entries, must have at most %d", len(file.Connections), maxConnections)
	}
	var problems []error
	byName := make(map[string]connection, len(file.Connections))
	for i := range file.Connections {
		c := &file.Connections[i]
		if _, twice := byName[c.Name]; twice && c.Name != "" {
			problems = append(problems,
				fmt.Errorf("connections[%d].name is %q for the second time, must be there once", i, c.Name))
		}
		for _, problem := range c.complete() {
			problems = append(problems, fmt.Errorf("connections[%d].%w", i, problem))
		}
		byName[c.Name] = *c
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return byName, nil
}

// complete normalizes the URLs, and returns the problems, each beginning with a key.
func (c *connection) complete() (problems []error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !isLabel(c.Name) {
		wrong("name is %q, must be lower-case letters, digits and dashes, at most %d", backlog.Quote(c.Name),
			validation.DNS1123LabelMaxLength)
	}
	var err error
	if c.AdminURL, err = backlog.ParseAdminURL(c.AdminURL); err != nil {
		wrong("adminURL %w", err)
	}
	if c.WorkerURL != "" {
		if c.WorkerURL, err = backlog.ParseAdminURL(c.WorkerURL); err != nil {
			wrong("workerURL %w", err)
		}
	}
	problems = append(problems, c.checkCredentials()...)
	if len(c.Namespaces) > maxNamespaces {
		wrong("namespaces has %d entries, must have at most %d", len(c.Namespaces), maxNamespaces)
	}
	for i, namespace := range c.Namespaces {
		if !isLabel(namespace) {
			wrong("namespaces[%d] is %q, must be the name of a namespace of Kubernetes; leave namespaces out for all", i,
				backlog.Quote(namespace))
		}
	}
	return problems
}

func (c *connection) checkCredentials() (problems []error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, file := range []struct{ key, path string }{
		{"tokenFile", c.TokenFile},
		{"authParamsFile", c.AuthParamsFile},
		{"caFile", c.CAFile},
	} {
		if file.path != "" && !filepath.IsAbs(file.path) {
			wrong("%s is %q, must be an absolute path", file.key, backlog.Quote(file.path))
		}
	}
	switch {
	case c.TokenFile != "" && (c.AuthPlugin != "" || c.AuthParamsFile != ""):
		wrong("tokenFile is set together with authPlugin or authParamsFile, must be the only one")
	case c.AuthPlugin == "" && c.AuthParamsFile != "":
		wrong("authPlugin is missing, must be set with authParamsFile: token, tls, basic or oauth2")
	case c.AuthPlugin != "" && c.AuthParamsFile == "":
		wrong("authParamsFile is missing, must be set with authPlugin")
	}
	if err := authparams.CheckPlugin(c.AuthPlugin); err != nil {
		wrong("authPlugin is %q, it %w", backlog.Quote(c.AuthPlugin), err)
	}
	return problems
}

func isLabel(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

// allowed are the sorted names that ScaledObjects of the namespace may use.
func allowed(byName map[string]connection, namespace string) []string {
	var names []string
	for name, c := range byName {
		if c.serves(namespace) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
