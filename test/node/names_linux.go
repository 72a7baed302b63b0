// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hostsFile is read by programs before DNS.
const hostsFile = "/etc/hosts"

// names resolves the names of headless Services for programs beside the pods, such as KEDA, in place of DNS: by a hosts
// file in this node's mount namespace.
type names struct {
	path string
	// base is the machine's file, and added the lines after it.
	base, added string
}

func newNames(dir string) (*names, error) {
	base, err := os.ReadFile(hostsFile)
	if err != nil {
		return nil, fmt.Errorf("reading the names of this machine: %w", err)
	}
	n := &names{path: filepath.Join(dir, "hosts"), base: strings.TrimSuffix(string(base), "\n") + "\n"}
	if err := os.WriteFile(n.path, []byte(n.base), 0o600); err != nil {
		return nil, fmt.Errorf("writing the names of this node: %w", err)
	}
	return n, bind(mount{Source: n.path, Target: hostsFile})
}

// set sets the addresses of all names. It overwrites the file in place, because it is mounted.
func (n *names) set(addresses map[string][]string) error {
	var added strings.Builder
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		for _, address := range addresses[name] {
			_, _ = fmt.Fprintf(&added, "%s %s\n", address, name)
		}
	}
	if added.String() == n.added {
		return nil
	}
	if err := os.WriteFile(n.path, []byte(n.base+added.String()), 0o600); err != nil {
		return fmt.Errorf("writing the names of this node: %w", err)
	}
	n.added = added.String()
	return nil
}
