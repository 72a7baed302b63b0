// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// Section is a part of the help text.
type Section struct {
	Title string
	// Add adds the flags of the section.
	Add func(*pflag.FlagSet)
}

// Program is the beginning of the help text.
type Program struct {
	Name string
	// Does describes the program in a sentence.
	Does string
}

// Parse parses the arguments into the variables behind the sections' flags. With --help it prints the sections in their
// order, with --version the version, and returns pflag.ErrHelp.
func Parse(program Program, args []string, help io.Writer, sections []Section) error {
	all := pflag.NewFlagSet(program.Name, pflag.ContinueOnError)
	all.Usage = func() {} // printed below, by section
	sets := make([]*pflag.FlagSet, len(sections))
	for i, s := range sections {
		sets[i] = pflag.NewFlagSet(s.Title, pflag.ContinueOnError)
		s.Add(sets[i])
		all.AddFlagSet(sets[i])
	}
	version := all.Bool("version", false, "")
	err := all.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return errors.Join(err, printHelp(help, program, sets))
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case all.NArg() > 0:
		return fmt.Errorf("argument %q is not a flag: flags look like --poll-interval=10s; see --help", all.Arg(0))
	case *version:
		return errors.Join(pflag.ErrHelp, printVersion(help, program))
	}
	return nil
}

func printVersion(out io.Writer, program Program) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the binary has no build information: build it with modules")
	}
	_, err := fmt.Fprintln(out, program.Name, Version(info))
	return err
}

func printHelp(out io.Writer, program Program, sections []*pflag.FlagSet) error {
	text := strings.Builder{}
	fmt.Fprintf(&text, "Usage: %[1]s [flags]\n       %[1]s --version\n\n%[2]s\n", program.Name, program.Does)
	for _, s := range sections {
		fmt.Fprintf(&text, "\n%s:\n\n%s", s.Name(), s.FlagUsagesWrapped(120))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// Problems collects problems.
type Problems []error

// Add adds a problem.
func (p *Problems) Add(format string, args ...any) {
	*p = append(*p, fmt.Errorf(format, args...))
}

// Between checks a flag against its bounds.
func Between[T cmp.Ordered](p *Problems, flag string, value, least, most T) {
	if value < least || value > most {
		p.Add("--%s is %v: it must be from %v to %v", flag, value, least, most)
	}
}

// OneOf checks a flag against its allowed values.
func (p *Problems) OneOf(flag, value string, words ...string) {
	if !slices.Contains(words, value) {
		p.Add("--%s is %q: it must be one of %s", flag, value, strings.Join(words, ", "))
	}
}

// Name checks a flag with a validation of package k8s.io/apimachinery/pkg/util/validation.
func (p *Problems) Name(flag, value string, validate func(string) []string) {
	for _, message := range validate(value) {
		p.Add("--%s is %q: %s", flag, value, message)
	}
}

// Credentials checks the flags of a program's own credentials for Pulsar.
func (p *Problems) Credentials(own auth.Own) {
	if err := authparams.CheckPlugin(own.Plugin); err != nil {
		p.Add("--pulsar-auth-plugin is %q: it %w", own.Plugin, err)
	}
	if own.Plugin != "" && own.TokenFile != "" {
		p.Add("--pulsar-auth-plugin is %q and --pulsar-token-file is %q: only one of them may be set", own.Plugin,
			own.TokenFile)
	}
	if (own.Plugin == "") != (own.ParamsFile == "") {
		p.Add("--pulsar-auth-plugin is %q and --pulsar-auth-params-file is %q: both or none must be set", own.Plugin,
			own.ParamsFile)
	}
}

// Redacted quotes a URL without its password.
func Redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "not a URL"
	}
	return fmt.Sprintf("%q", u.Redacted())
}

// Version is the version that the Go toolchain wrote into the binary: that of the commit's tag, else a pseudo-version,
// with +dirty for uncommitted changes; then the commit and the toolchain.
func Version(info *debug.BuildInfo) string {
	commit := ""
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = "commit " + setting.Value + ", "
		}
	}
	return fmt.Sprintf("%s (%s%s %s/%s)", info.Main.Version, commit, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
