// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// Connections are the Pulsar clusters that triggers may name, from --connections-file. The file may change: its last
// valid content applies. It is the auth.Source of their credentials and, by other names, those of objects. It is safe
// for concurrent use.
type Connections struct {
	objects auth.Source // of the credentials that objects of users name
	logger  *slog.Logger
	file    *auth.File[map[string]connection]

	// mu guards bundles, which are files of certificates by path.
	mu      sync.Mutex
	bundles map[string]*auth.File[string]
}

var _ auth.Source = (*Connections)(nil)

// New reads the file, which must be valid at the start; an empty path means no connections.
func New(path string, objects auth.Source, logger *slog.Logger) (*Connections, error) {
	c := &Connections{objects: objects, logger: logger, bundles: map[string]*auth.File[string]{}}
	file, err := auth.NewFile(path, func(text string) (map[string]connection, error) {
		byName, err := decode([]byte(text))
		if err == nil && c.file != nil {
			logger.Info("read the file of connections", "path", path, "connections", len(byName))
		}
		return byName, err
	}, c.failed(path))
	if err != nil {
		return nil, fmt.Errorf("reading --connections-file %s: %w", path, err)
	}
	c.file = file
	return c, nil
}

// failed logs why a change of a file does not apply.
func (c *Connections) failed(path string) func(error) {
	return func(err error) {
		c.logger.Error("reading a file failed, using its last valid content", "path", path, "error", err)
	}
}

// roots returns the certificates in a file, the last valid ones while it is being replaced; empty without a path.
func (c *Connections) roots(path string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bundles[path] == nil {
		file, err := auth.NewCAFile(path, c.failed(path))
		if err != nil {
			return "", err
		}
		c.bundles[path] = file
	}
	return c.bundles[path].Current(), nil
}

// Resolve returns the cluster of a connection for a ScaledObject of the namespace, and its function worker if that runs
// separately. The error wraps backlog.ErrUnsupported, and names only connections that the namespace may use.
func (c *Connections) Resolve(name, namespace string) (cluster backlog.Cluster, workerURL string, err error) {
	byName := c.file.Current() // must not be changed
	found, known := byName[name]
	if !known || !found.serves(namespace) {
		may := "which may use none"
		if names := allowed(byName, namespace); len(names) > 0 {
			may = "which may use " + backlog.Quote(strings.Join(names, ", "))
		}
		return backlog.Cluster{}, "",
			backlog.Errorf(backlog.ErrUnsupported, "connection %q is not for namespace %s, %s: correct connection, or have it "+
				"added to --connections-file of the scaler (value scaler.connections of the chart)", backlog.Quote(name),
				namespace, may)
	}
	return backlog.Cluster{AdminURL: found.AdminURL, Access: found.access()}, found.WorkerURL, nil
}

// knows reports whether the name of credentials is that of a current or former connection, and not of a policy or a
// target.
func (c *Connections) knows(access string) bool {
	rest, found := strings.CutPrefix(access, accessPrefix)
	return found && strings.Contains(rest, "@") && !strings.Contains(rest, "#")
}

// named returns the connection with credentials of that name.
func (c *Connections) named(access string) (connection, bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(access, accessPrefix), "@")
	found, known := c.file.Current()[name]
	return found, known && found.access() == access
}

// Administered reports whether the administrator provided the credentials of that name, and for which URLs.
func (c *Connections) Administered(access string) (urls []string, is bool) {
	if !c.knows(access) {
		return nil, false
	}
	found, known := c.named(access)
	if !known {
		return nil, false
	}
	return found.urls(), true
}

// Credentials returns the current content of the credentials of that name.
func (c *Connections) Credentials(ctx context.Context, access string) (backlog.Credentials, error) {
	if !c.knows(access) {
		return c.objects.Credentials(ctx, access)
	}
	found, known := c.named(access)
	if !known {
		return backlog.Credentials{},
			backlog.Errorf(backlog.ErrUnauthenticated,
				"the connection has been removed from --connections-file of the scaler (value scaler.connections of the "+
					"chart), or leads elsewhere now")
	}
	credentials := backlog.Credentials{
		Plugin: found.AuthPlugin, AllowInsecureConnection: found.AllowInsecureConnection,
		SkipHostnameVerification: found.TLSHostnameVerification != nil && !*found.TLSHostnameVerification,
	}
	var err error
	if credentials.TrustCerts, err = c.roots(found.CAFile); err != nil {
		return backlog.Credentials{}, fmt.Errorf("caFile of connection %s: %s: %w", found.Name, found.CAFile, err)
	}
	switch {
	case found.TokenFile != "": // package pulsar reads and bounds it
		credentials.Plugin, credentials.Params = "token", (&url.URL{Scheme: "file", Path: found.TokenFile}).String()
	case found.AuthParamsFile != "":
		if credentials.Params, err = auth.ReadFile(found.AuthParamsFile); err != nil {
			return backlog.Credentials{}, fmt.Errorf("authParamsFile of connection %s: %s: %w", found.Name,
				found.AuthParamsFile, err)
		}
	}
	return credentials, nil
}

// Invalidate applies to names of objects only: files are always read again.
func (c *Connections) Invalidate(access string) {
	if !c.knows(access) {
		c.objects.Invalidate(access)
	}
}
