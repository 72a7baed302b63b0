// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// Own are the program's own credentials. Files are read for every request.
type Own struct {
	// Token is a literal token, TokenFile a file with one. At most one of Token, TokenFile and Plugin is set.
	Token, TokenFile string
	// Plugin and Params are authPlugin and authParams of Pulsar's client.conf; ParamsFile is a file with Params instead.
	Plugin, Params, ParamsFile string
	// CAFile has the PEM certificates of the brokers' CA; empty for the system's.
	CAFile string
}

// own are credentials that may be in files.
type own struct {
	// params are the configured parameters. Without a file of parameters they are complete except for files that they
	// name.
	params authparams.Params
	// plugin and paramsFile are set if the parameters are in a file.
	plugin, paramsFile string
	roots              *CAFile
}

func newOwn(config Own) (own, error) {
	o := own{plugin: config.Plugin, paramsFile: config.ParamsFile}
	var err error
	switch {
	case config.TokenFile != "":
		o.params = authparams.Params{Method: authparams.Token, Token: authparams.Value{Path: config.TokenFile}}
	case config.Token != "":
		o.params.Method = authparams.Token
		if o.params.Token.Content, err = authparams.ParseToken(config.Token); err != nil {
			err = fmt.Errorf("token: %w", err)
		}
	case config.ParamsFile != "":
		o.params, err = o.decodeFile()
	default:
		o.params, err = authparams.Parse(config.Plugin, config.Params)
	}
	if err != nil {
		return own{}, err
	}
	if o.roots, err = NewCAFile(config.CAFile); err != nil {
		return own{}, fmt.Errorf("caFile %q: %w", config.CAFile, err)
	}
	return o, nil
}

// decodeFile reads the file of parameters.
func (o own) decodeFile() (authparams.Params, error) {
	text, err := ReadFile(o.paramsFile)
	if err != nil {
		return authparams.Params{}, fmt.Errorf("authParamsFile %s: %w", o.paramsFile, err)
	}
	decoded, err := authparams.Parse(o.plugin, text)
	if err != nil {
		return authparams.Params{}, fmt.Errorf("authParamsFile %s: %w", o.paramsFile, err)
	}
	return decoded, nil
}

func (o own) material() (material, error) {
	decoded, err := o.params, error(nil)
	if o.paramsFile != "" {
		decoded, err = o.decodeFile()
	}
	if err == nil {
		decoded, err = readParams(decoded)
	}
	if err != nil {
		return material{}, err
	}
	return material{Params: decoded, roots: o.roots.PEM()}, nil
}
