// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a reader can hold in mind.
const (
	mostLines   = 400 // of a file
	mostFiles   = 30  // of a package of the product, without tests
	mostMethods = 15  // of a type of the product
	mostVague   = 10  // words that name no actor, in the product
)

// longestTest is the limit of lines of a test today. It gets smaller.
const longestTest = 550

// product are the top folders of what ships.
func product() []string {
	return []string{"api", "backlog", "cmd", "controllers", "policy", "provider"}
}

// source is a Go file that a person wrote, by its path below the root.
type source struct {
	path string
	text []byte
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// ships says whether the file is part of the product.
func (s source) ships() bool {
	return slices.Contains(product(), s.top()) && !s.isTest()
}

// top is the folder below the root that the file is in.
func (s source) top() string {
	top, _, _ := strings.Cut(s.path, string(filepath.Separator))
	return top
}

func (s source) declarations(t *testing.T) []ast.Decl {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file.Decls
}

func sources(t *testing.T) (all []source) {
	t.Helper()
	root := rootDir(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasPrefix(entry.Name(), "zz_generated"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		all = append(all, source{path: relative, text: text})
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func TestFilesHaveTheirHeaderAndEnd(t *testing.T) {
	licence := []byte("// Copyright The pulsar-autoscaler Authors\n// SPDX-License-Identifier: Apache-2.0\n")
	for _, s := range sources(t) {
		hasHeader := bytes.HasPrefix(s.text, licence) || bytes.HasPrefix(s.text, []byte("//go:build"))
		require.True(t, hasHeader, "%s lacks the licence header", s.path)
		limit := mostLines
		if s.isTest() {
			limit = longestTest
		}
		require.LessOrEqual(t, bytes.Count(s.text, []byte("\n")), limit, "%s has too many lines", s.path)
	}
}

func TestPackagesStaySmall(t *testing.T) {
	files := map[string]int{}
	for _, s := range sources(t) {
		if s.ships() {
			files[filepath.Dir(s.path)]++
		}
	}
	for dir, n := range files {
		require.LessOrEqual(t, n, mostFiles, "%s has too many files", dir)
	}
}

func TestTypesStaySmall(t *testing.T) {
	methods := map[string]int{}
	for _, s := range sources(t) {
		if !s.ships() {
			continue
		}
		for _, declaration := range s.declarations(t) {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil {
				methods[filepath.Dir(s.path)+"."+receiver(function.Recv.List[0].Type)]++
			}
		}
	}
	for name, n := range methods {
		require.LessOrEqual(t, n, mostMethods, "%s has too many methods", name)
	}
}

// receiver is the name of the type without its pointer and its type parameters.
func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestTextsNameTheirActors(t *testing.T) {
	vague := regexp.MustCompile(`\b([Nn]obody|[Ss]omebody|[Ww]hoever|[Ww]hose)\b`)
	var found []string
	for _, s := range sources(t) {
		if !s.ships() {
			continue
		}
		for _, word := range vague.FindAll(s.text, -1) {
			found = append(found, s.path+": "+string(word))
		}
	}
	require.LessOrEqual(t, len(found), mostVague, "say the controller, the HPA or the user: %v", found)
}
