// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package page writes results as one HTML file that needs no network: a summary, limits and whether they were met,
// tables, and charts with a cursor and zoom. It follows the light and dark scheme, prints, and is usable by keyboard
// and screen reader; each chart has its values as a table.
//
// Layer 3. It lays out the caller's results and computes none of them. The same input gives the same bytes. The browser
// may run only the two scripts of the file, by their checksums, and may load nothing.
package page
