package client

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// Config says how to reach a service. Its zero values, URL and Key aside, are the
// defaults named here.
type Config struct {
	// URL is the service's address, such as "https://reports.example.com". A path in
	// it is kept, for a service behind a proxy. Required.
	URL string
	// Key is the API key, fl_<id>_<secret>. It goes to the service alone: neither to the
	// storage nor to where an answer might redirect.
	Key string
	// HTTPClient sends the requests; by default one like [http.DefaultClient]. Its
	// CheckRedirect is not used: the client follows no redirects.
	HTTPClient *http.Client
	// MaxAttempts bounds how often one request is sent. Default 5.
	MaxAttempts int
	// Backoff is about how long to wait after the first attempt; it doubles with each
	// further one, up to MaxBackoff. Default 100 ms.
	Backoff time.Duration
	// MaxBackoff is the longest wait between two attempts. A call ends with its error
	// where the service asks for more patience than that. Default 10 s.
	MaxBackoff time.Duration
	// AttemptTimeout bounds one attempt of a request that carries no content, beyond
	// what it asks the service to wait, and the wait for a download to begin. Default
	// 30 s.
	AttemptTimeout time.Duration
	// StallTimeout is how long an upload or a download may stand still before that attempt
	// is given up. Default 2 min.
	StallTimeout time.Duration
	// Margin is how much earlier than the service a lease counts as over on this side,
	// for what happens between looking at the clock and acting. Default 500 ms.
	Margin time.Duration
	// PartsAbove is of how many bytes on [Capability.Upload] sends a body in parts, several
	// at once. Default 64 MiB.
	PartsAbove int64
	// PartSize is how many bytes a part has: at least 5 MiB, and more where there would be
	// over 10 000 parts. Default 16 MiB.
	PartSize int64
	// PartsAtOnce is how many parts of an upload are sent at the same time. Of a body that
	// can be read only once so many are kept in memory. Default 4.
	PartsAtOnce int
	// UserAgent names the program to the service. Default "fenceline-client".
	UserAgent string
}

// Client speaks to one service with one key. It may be used by several goroutines at
// once. It holds nothing that must be closed.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client
	now    func() instant
}

// New makes a client; it sends nothing yet. A URL that cannot be used shows in the first
// call, as [ErrInvalidRequest].
func New(config Config) *Client {
	config.MaxAttempts = cmp.Or(config.MaxAttempts, 5)
	config.Backoff = cmp.Or(config.Backoff, 100*time.Millisecond)
	config.MaxBackoff = cmp.Or(config.MaxBackoff, 10*time.Second)
	config.AttemptTimeout = cmp.Or(config.AttemptTimeout, 30*time.Second)
	config.StallTimeout = cmp.Or(config.StallTimeout, 2*time.Minute)
	config.Margin = cmp.Or(config.Margin, 500*time.Millisecond)
	config.PartsAbove = cmp.Or(config.PartsAbove, 64<<20)
	config.PartSize = cmp.Or(config.PartSize, 16<<20)
	config.PartsAtOnce = max(cmp.Or(config.PartsAtOnce, 4), 1)
	config.UserAgent = cmp.Or(config.UserAgent, "fenceline-client")

	sender := http.Client{}
	if config.HTTPClient != nil {
		sender = *config.HTTPClient
	}
	// A redirect would take the key, or a change, to an address that nobody named.
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	base, err := url.Parse(config.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		base = nil
	}
	return &Client{config: config, base: base, http: &sender, now: readClock}
}

// address is the URL of a path below /v1.
func (c *Client) address(segments []string, query url.Values) string {
	target := *c.base.JoinPath(append([]string{"v1"}, segments...)...)
	target.RawQuery = query.Encode()
	return target.String()
}

// idPattern is what the ids of reports, leases and objects have in common. Nothing that
// it matches changes its meaning in a path; the service knows the lengths.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkIDs refuses ids that would make another path of a request. It takes pairs of what
// an id names and the id itself.
func checkIDs(op string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if name, id := pairs[i], pairs[i+1]; !idPattern.MatchString(id) {
			return invalid(op, "the %s id %q is not one: letters, digits, '.', '_', '-', the first a letter or digit", name, id)
		}
	}
	return nil
}

// opName describes a call for its errors: a verb, what it is done to, and the report.
func opName(verb, what, report string) string {
	return fmt.Sprintf("%s %s of report %q", verb, what, report)
}
