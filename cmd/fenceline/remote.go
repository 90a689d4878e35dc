package main

import (
	"errors"
	"net/url"
	"os"

	"github.com/fenceline/fenceline/client"
)

// remote is the service that a command speaks to; each command of workers and readers
// embeds it.
type remote struct {
	URL string `env:"FENCELINE_URL" placeholder:"URL" help:"Address of the service, such as http://127.0.0.1:8080."`
	Key string `env:"FENCELINE_KEY" placeholder:"KEY" help:"API key. Better given by the variable: others on this machine can read command lines."`
}

// Validate refuses settings with which nothing could be sent. Kong calls it.
func (r remote) Validate() error {
	if r.URL == "" {
		return errors.New("no service named: set --url or FENCELINE_URL")
	}
	address, err := url.Parse(r.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return errors.New("--url (FENCELINE_URL) must be an http or https address, such as http://127.0.0.1:8080") // it may hold a password
	}
	if r.Key == "" {
		return errors.New("no API key given: set FENCELINE_KEY or --key")
	}
	return nil
}

// client speaks to the service.
func (r remote) client() *client.Client {
	return client.New(client.Config{URL: r.URL, Key: r.Key, UserAgent: "fenceline/" + programVersion()})
}

// maxHolder is how many bytes of a host's name make a holder.
const maxHolder = 200

// defaultHolder names this machine as the holder of a lease. It is the same on each call, so that a
// repeated acquire of the same lease id is the same request.
func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "fenceline"
	}
	return host[:min(len(host), maxHolder)]
}
