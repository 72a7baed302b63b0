// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package jdk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldest is the lowest major version that runs Pulsar 4.x and 5.x.
const oldest = 17

var (
	// ErrNoJDK means that no usable JDK was found.
	ErrNoJDK = errors.New("no JDK found")
	// ErrNoMaven means that the mvn command was not found.
	ErrNoMaven = errors.New("no Maven found")
)

// JDK is an installed Java development kit.
type JDK struct {
	// Home is its directory, as in JAVA_HOME.
	Home string
	// Version is its JAVA_VERSION, e.g. "17.0.15" or "25".
	Version string
}

// Java is the path of the java command.
func (j JDK) Java() string { return filepath.Join(j.Home, "bin", "java") }

// Javac is the path of the compiler.
func (j JDK) Javac() string { return filepath.Join(j.Home, "bin", "javac") }

// Jar is the path of the jar command.
func (j JDK) Jar() string { return filepath.Join(j.Home, "bin", "jar") }

// Major is the feature release, e.g. 25; 0 if the version cannot be parsed.
func (j JDK) Major() int {
	parts := numbers(j.Version)
	if len(parts) == 0 {
		return 0
	}
	return parts[0]
}

// Find returns the newest JDK of at least version 17 in JAVA_HOME, PATH and the usual directories of Linux and macOS.
// Newest, because JDK-8351933 breaks 17.0.15 under a broker's load. The error wraps ErrNoJDK.
func Find() (JDK, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // no home, no SDKMAN
	}
	candidates := []string{os.Getenv("JAVA_HOME")}
	if javac, err := exec.LookPath("javac"); err == nil {
		if target, err := filepath.EvalSymlinks(javac); err == nil {
			candidates = append(candidates, filepath.Dir(filepath.Dir(target)))
		}
	}
	for _, pattern := range usual(home) {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return JDK{}, fmt.Errorf("looking for a JDK in %s: %w", pattern, err)
		}
		candidates = append(candidates, found...)
	}
	return newest(candidates)
}

// Maven returns the path of the mvn command. The error wraps ErrNoMaven.
func Maven() (string, error) {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("%w: install Maven 3.6 or later so that mvn is in PATH (Debian, Ubuntu: apt-get install "+
			"maven; Fedora: dnf install maven; macOS: brew install maven): %w", ErrNoMaven, err)
	}
	return path, nil
}

// usual are the directories that hold JDKs, as glob patterns.
func usual(home string) []string {
	patterns := []string{
		"/usr/lib/jvm/*",
		"/usr/java/*",
		"/opt/*",
		"/opt/java/*",
		"/Library/Java/JavaVirtualMachines/*/Contents/Home",
		"/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
		"/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
	}
	if home == "" {
		return patterns
	}
	return append(patterns,
		filepath.Join(home, ".sdkman/candidates/java/*"),
		filepath.Join(home, ".jdks/*"),
		filepath.Join(home, "Library/Java/JavaVirtualMachines/*/Contents/Home"),
	)
}

// newest returns the newest JDK of the directories, most of which need not be JDKs.
func newest(candidates []string) (JDK, error) {
	var best JDK
	var refused []string
	for _, dir := range candidates {
		found, err := read(dir)
		switch {
		case err != nil:
			continue // not a JDK: a JRE, a link to nothing, some other program
		case found.Major() < oldest:
			refused = append(refused, fmt.Sprintf("%s (%s)", found.Home, found.Version))
		case best.Home == "" || slices.Compare(numbers(found.Version), numbers(best.Version)) > 0:
			best = found
		}
	}
	if best.Home != "" {
		return best, nil
	}
	advice := fmt.Sprintf("install a JDK of version %d or later, with javac (Debian, Ubuntu: apt-get install "+
		"openjdk-17-jdk-headless; Fedora: dnf install java-latest-openjdk-devel; macOS: brew install openjdk), or set "+
		"JAVA_HOME", oldest)
	if len(refused) > 0 {
		return JDK{}, fmt.Errorf("%w that is new enough, only %s: %s", ErrNoJDK, strings.Join(refused, ", "), advice)
	}
	return JDK{}, fmt.Errorf("%w: %s", ErrNoJDK, advice)
}

var versionLine = regexp.MustCompile(`(?m)^JAVA_VERSION="([^"]+)"`)

// read reads the version from the release file that every JDK since 7 has, and requires java and javac beside it.
func read(dir string) (JDK, error) {
	if dir == "" {
		return JDK{}, errors.New("no directory")
	}
	release, err := os.ReadFile(filepath.Join(dir, "release"))
	if err != nil {
		return JDK{}, err
	}
	match := versionLine.FindSubmatch(release)
	if match == nil {
		return JDK{}, fmt.Errorf("no JAVA_VERSION in %s", filepath.Join(dir, "release"))
	}
	found := JDK{Home: dir, Version: string(match[1])}
	for _, command := range []string{found.Java(), found.Javac(), found.Jar()} {
		if _, err := exec.LookPath(command); err != nil {
			return JDK{}, err
		}
	}
	return found, nil
}

// numbers splits "17.0.15" or "21.0.2-ea+3" into its leading numbers.
func numbers(version string) []int {
	var out []int
	for part := range strings.FieldsFuncSeq(version, func(r rune) bool { return strings.ContainsRune(".-+_", r) }) {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}
