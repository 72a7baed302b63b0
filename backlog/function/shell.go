// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"slices"
	"strings"
)

// Arguments that configure an instance of Pulsar: one for Java and Python instances, and one for Go instances.
//
// Source: Pulsar's RuntimeUtils.getCmd and getGoInstanceCmd.
const (
	argumentDetails  = "--function_details"
	argumentInstance = "-instance-conf"
)

// StartsInstance reports whether a container's command may be that of an instance, without parsing its quotes.
func StartsInstance(command []string) bool {
	return slices.ContainsFunc(command, func(part string) bool {
		return strings.Contains(part, argumentDetails) || strings.Contains(part, argumentInstance)
	})
}

// argument returns the value of the named argument in a container's command: a list of arguments, or a script for sh
// -c, where it is quoted. It is empty if there is no such argument.
func argument(command []string, name string) (string, error) {
	for i, part := range command {
		if part == name && i+1 < len(command) {
			return command[i+1], nil
		}
		if !strings.Contains(part, name) {
			continue
		}
		words, err := splitWords(part)
		if err != nil {
			return "", err
		}
		if at := slices.Index(words, name); at >= 0 && at+1 < len(words) {
			return words[at+1], nil
		}
	}
	return "", nil
}

// errQuoteOpen: a script cannot be split.
var errQuoteOpen = errors.New("a quotation mark in its command is never closed")

// splitWords splits a script into words as a shell does, with blanks, quotes and backslashes. It expands nothing, and
// treats operators as words.
//
// Source: POSIX, Shell Command Language, 2.2 Quoting.
func splitWords(script string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	for i := 0; i < len(script); i++ {
		switch c := script[i]; c {
		case ' ', '\t', '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
			continue
		case '\'':
			end := strings.IndexByte(script[i+1:], '\'')
			if end < 0 {
				return nil, errQuoteOpen
			}
			word.WriteString(script[i+1 : i+1+end])
			i += end + 1
		case '"':
			text, length, err := doubleQuoted(script[i+1:])
			if err != nil {
				return nil, err
			}
			word.WriteString(text)
			i += length
		case '\\':
			if i++; i < len(script) && script[i] != '\n' {
				word.WriteByte(script[i])
			}
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// doubleQuoted returns the text up to the closing mark, and its length in bytes with the mark.
func doubleQuoted(script string) (text string, length int, err error) {
	var word strings.Builder
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case c == '"':
			return word.String(), i + 1, nil
		case c == '\\' && i+1 < len(script) && strings.IndexByte("$`\"\\\n", script[i+1]) >= 0:
			if i++; script[i] != '\n' {
				word.WriteByte(script[i])
			}
		default:
			word.WriteByte(c)
		}
	}
	return "", 0, errQuoteOpen
}
