// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	// Version is the default version of Pulsar: the LTS line, which has a server tarball on Maven Central.
	Version = "4.0.8"
	// VersionVariable is the environment variable that selects another version.
	VersionVariable = "PULSAR"
)

const (
	dependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
	mavenGrace       = 2 * time.Second
)

// ErrVersion means that a version of Pulsar is not completely on Maven Central.
var ErrVersion = errors.New("unknown version of Pulsar")

//go:embed maven
var files embed.FS

// Pulsar is a Pulsar on disk. All processes of the machine share it: do not write into it.
type Pulsar struct {
	// Version of Pulsar, e.g. "4.0.8".
	Version string
	// Lib is the directory of the broker's jars.
	Lib string
	// InstanceJar is the java-instance.jar that starts a Java function instance. It is empty if the distribution lacks it:
	// Central has it only in a server tarball.
	InstanceJar string
}

// Versions lists the versions of Fetch, the default first.
func Versions() []string { return []string{Version, "4.2.4", "5.0.0-M1"} }

// Fetch returns Pulsar of the given version (empty: $PULSAR, else 4.0.8). Maven downloads it once into the
// cache: 245 MB in 10 to 70 s, reported to progress (nil for none). Errors wrap ErrVersion, jdk.ErrNoJDK,
// jdk.ErrNoMaven or quote Maven's last lines.
func Fetch(ctx context.Context, version string, progress io.Writer) (Pulsar, error) {
	version = orDefault(version)
	if !slices.Contains(Versions(), version) {
		return Pulsar{},
			fmt.Errorf("%w: %q: $%s must be one of %s", ErrVersion, version, VersionVariable, strings.Join(Versions(), ", "))
	}
	if version == Version {
		return tarball(ctx, progress)
	}
	return jars(ctx, version, progress)
}

func orDefault(version string) string {
	if version == "" {
		version = os.Getenv(VersionVariable)
	}
	if version == "" {
		version = Version
	}
	return version
}

// tarball returns the official server distribution, which is one artifact.
func tarball(ctx context.Context, progress io.Writer) (Pulsar, error) {
	what := fmt.Sprintf("downloading Pulsar %s from Maven Central (245 MB, once)", Version)
	dir, err := fill(ctx, "pulsar-"+Version, progress, what, "-Dmdep.unpack.excludes=**/python-instance/**")
	if err != nil {
		return Pulsar{}, fmt.Errorf("getting Pulsar %s: %w", Version, err)
	}
	root := filepath.Join(dir, "apache-pulsar-"+Version)
	return Pulsar{
		Version:     Version,
		Lib:         filepath.Join(root, "lib"),
		InstanceJar: filepath.Join(root, "instances", "java-instance.jar"),
	}, nil
}

// fill unpacks the selected part of the tarball into the cache.
func fill(ctx context.Context, key string, progress io.Writer, what, selection string) (dir string, err error) {
	return cache.Fill(ctx, key, progress, func(ctx context.Context, dir string) error {
		return maven(ctx, progress, what, dependencyPlugin+":unpack",
			"-Dartifact=org.apache.pulsar:pulsar-server-distribution:"+Version+":tar.gz:bin",
			"-DoutputDirectory="+dir, selection)
	})
}

// jars downloads the jars of a version without a tarball on Central.
func jars(ctx context.Context, version string, progress io.Writer) (Pulsar, error) {
	pom, err := files.ReadFile("maven/" + version + "/pom.xml")
	if err != nil {
		return Pulsar{}, fmt.Errorf("reading the pom of Pulsar %s: %w", version, err)
	}
	key := fmt.Sprintf("pulsar-%s-%x", version, sha256.Sum256(pom))[:len("pulsar-")+len(version)+9]
	dir, err := cache.Fill(ctx, key, progress, func(ctx context.Context, dir string) error {
		path := filepath.Join(dir, "pom.xml")
		if err := os.WriteFile(path, pom, 0o600); err != nil {
			return fmt.Errorf("writing the pom: %w", err)
		}
		what := fmt.Sprintf("downloading the jars of Pulsar %s from Maven Central (up to 240 MB, once)", version)
		return maven(ctx, progress, what, dependencyPlugin+":copy-dependencies", "-f", path,
			"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(dir, "lib"))
	})
	if err != nil {
		return Pulsar{}, fmt.Errorf("getting Pulsar %s: %w", version, err)
	}
	return Pulsar{Version: version, Lib: filepath.Join(dir, "lib")}, nil
}

// maven runs one goal in a new directory, so that it finds no surrounding project.
func maven(ctx context.Context, progress io.Writer, what string, args ...string) error {
	mvn, err := jdk.Maven()
	if err != nil {
		return err
	}
	kit, err := jdk.Find()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pulsar-autoscaler-maven-*")
	if err != nil {
		return fmt.Errorf("making a directory for Maven: %w", err)
	}
	err = cache.Announce(ctx, progress, what, func(ctx context.Context) error {
		return proc.Run(ctx, proc.Config{
			Name: "mvn " + args[0], Path: mvn, Args: append([]string{"--batch-mode", "--quiet"}, args...),
			Env: []string{"JAVA_HOME=" + kit.Home}, Dir: dir, Grace: mavenGrace,
		})
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// FetchClient returns the directory of the jars of the V5 client, which is of 5.0.0-M1 and consumes scalable topics.
func FetchClient(ctx context.Context, progress io.Writer) (dir string, err error) {
	client, err := jars(ctx, "5.0.0-M1-client", progress)
	return client.Lib, err
}
