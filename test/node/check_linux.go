// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// checkMachine says in less than a second what this machine lacks for a node: the ip command, namespaces, or kernel
// modules. It creates what a node has in namespaces that end with it.
func checkMachine(ctx context.Context) error {
	path, err := exec.LookPath("ip")
	if err != nil {
		return fmt.Errorf("looking for the ip command: %w: install iproute2 (Debian, Ubuntu: apt-get install iproute2; "+
			"Fedora: dnf install iproute)", err)
	}
	command := exec.CommandContext(ctx, path, "-batch", "-")
	command.Stdin = strings.NewReader("link set lo up\nlink add " + bridge + " type bridge\n" +
		"link add check0 type veth peer name check1\n")
	command.SysProcAttr = namespaces()
	out, err := command.CombinedOutput()
	switch text := strings.TrimSpace(string(out)); {
	case err == nil:
		return nil
	case text == "": // it did not start
		return fmt.Errorf("starting a process in namespaces of its own: %w: %s", err, allowNamespaces)
	case remedy(text) == "":
		return fmt.Errorf("adding a bridge in a network namespace: %s: %w", text, err)
	default:
		return fmt.Errorf("adding a bridge in a network namespace: %s: %w: %s", text, err, remedy(text))
	}
}

// namespaces are those of a node.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		// An unprivileged user may map only one user.
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
}
