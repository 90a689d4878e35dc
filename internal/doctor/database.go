package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/migrations"
	"github.com/fenceline/fenceline/staging"
)

const (
	// oldestVersion is the first release of PostgreSQL that the schema works with, as the server numbers it.
	oldestVersion = 150000

	// longTransaction is how long a transaction may be open before it keeps dead rows from being cleaned away.
	longTransaction = 10 * time.Minute
)

// server is what the database says of itself.
type server struct {
	Now           time.Time
	Version       int
	VersionText   string
	Standby       bool
	ReadOnly      bool
	Role          string
	Superuser     bool
	Member        bool // of fenceline_service
	Fsync         string
	FullPages     string
	Commit        string
	Connections   int // that ordinary roles may have
	OpenFor       *float64
	PreparedFor   *float64
	PreparedCount int
}

const selectServer = `
	SELECT clock_timestamp() AS now, current_setting('server_version_num')::integer AS version,
	       current_setting('server_version') AS version_text, pg_is_in_recovery() AS standby,
	       current_setting('default_transaction_read_only')::boolean AS read_only, current_user::text AS role,
	       current_setting('is_superuser')::boolean AS superuser,
	       EXISTS (SELECT FROM pg_roles WHERE rolname = 'fenceline_service' AND pg_has_role(current_user, oid, 'MEMBER')) AS member,
	       current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_pages,
	       current_setting('synchronous_commit') AS commit,
	       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer AS connections,
	       (SELECT extract(epoch FROM max(clock_timestamp() - xact_start))::double precision FROM pg_stat_activity
	        WHERE datname = current_database() AND pid <> pg_backend_pid()) AS open_for,
	       (SELECT extract(epoch FROM max(clock_timestamp() - prepared))::double precision FROM pg_prepared_xacts
	        WHERE database = current_database()) AS prepared_for,
	       (SELECT count(*)::integer FROM pg_prepared_xacts WHERE database = current_database()) AS prepared_count`

// database looks at the database.
func (d *Doctor) database(ctx context.Context) []Finding {
	began := time.Now()
	s, found, err := database.Row[server](ctx, d.Pool, selectServer, pgx.NamedArgs{})
	middle := began.Add(time.Since(began) / 2)
	if err == nil && !found {
		err = errors.New("it answered nothing")
	}
	if err != nil {
		return []Finding{{
			About: "database", Check: "reachable", Result: Failed, Detail: err.Error(),
			Follows: "nothing else was tried: see --database-url, and whether the server runs",
		}}
	}
	findings := []Finding{
		{About: "database", Check: "reachable", Result: OK, Detail: "PostgreSQL " + s.VersionText},
		s.release(), s.writable(), s.durability(), s.room(d.PoolSize), s.clock(middle), s.transactions(), s.prepared(),
	}
	findings = append(findings, d.schema(ctx))
	if findings[len(findings)-1].Result != OK {
		return findings
	}
	return append(findings, s.role(ctx, d), d.identity(ctx), d.owner(ctx))
}

func (s server) release() Finding {
	f := Finding{About: "database", Check: "release", Result: OK}
	if s.Version < oldestVersion {
		f.Result, f.Detail, f.Follows = Failed, s.VersionText, "it must be 15 or later"
	}
	return f
}

func (s server) writable() Finding {
	f := Finding{About: "database", Check: "primary, takes changes", Result: OK}
	switch {
	case s.Standby:
		f.Result, f.Detail, f.Follows = Failed, "a standby", "nothing is granted, published or collected: give the address of the primary"
	case s.ReadOnly:
		f.Result, f.Detail, f.Follows = Failed, "default_transaction_read_only is on", "nothing is granted, published or collected"
	}
	return f
}

func (s server) durability() Finding {
	f := Finding{
		About: "database", Check: "what is acknowledged is on disk", Result: OK,
		Detail: fmt.Sprintf("fsync %s, full_page_writes %s, synchronous_commit %s", s.Fsync, s.FullPages, s.Commit),
	}
	if s.Fsync != "on" || s.FullPages != "on" {
		f.Result, f.Follows = Warning, "what was acknowledged is lost, or all is damaged, when the machine fails: not for production"
	} else if s.Commit == "off" || s.Commit == "local" {
		f.Follows = "changes set it to on for themselves"
	}
	return f
}

func (s server) room(pool int32) Finding {
	f := Finding{
		About: "database", Check: "connections", Result: OK,
		Detail: fmt.Sprintf("%d, of which an instance takes %d", s.Connections, pool),
	}
	if int(pool) > s.Connections {
		f.Result, f.Follows = Failed, "an instance under load is refused connections: set a lower --database-pool, or a higher max_connections"
	} else if int(pool)*2 > s.Connections {
		f.Result, f.Follows = Warning, "there is no room for a second instance: set a lower --database-pool, or a higher max_connections"
	}
	return f
}

func (s server) clock(here time.Time) Finding {
	skew := s.Now.Sub(here)
	f := Finding{About: "database", Check: "clock", Result: OK, Detail: "the same as here"}
	if skew.Abs() > 2*time.Second {
		f.Detail = fmt.Sprintf("%v from this machine's", skew.Round(time.Second))
	}
	if skew.Abs() > noticeableSkew {
		f.Result, f.Follows = Warning, "upload URLs, signed by this machine's clock, end earlier or later than their objects: set the clocks"
	}
	return f
}

func (s server) transactions() Finding {
	f := Finding{About: "database", Check: "open transactions", Result: OK, Detail: "none that this role sees"}
	if s.OpenFor != nil {
		open := time.Duration(*s.OpenFor * float64(time.Second)).Round(time.Second)
		f.Detail = fmt.Sprintf("the oldest for %v", open)
		if open > longTransaction {
			f.Result, f.Follows = Warning, "dead rows stay, and everything gets slower: end it"
		}
	}
	return f
}

func (s server) prepared() Finding {
	f := Finding{About: "database", Check: "prepared transactions", Result: OK, Detail: "none"}
	if s.PreparedFor != nil {
		age := time.Duration(*s.PreparedFor * float64(time.Second)).Round(time.Second)
		f.Detail = fmt.Sprintf("%d, the oldest for %v", s.PreparedCount, age)
		if age > longTransaction {
			f.Result, f.Follows = Warning, "dead rows and locks stay until it is committed or rolled back"
		}
	}
	return f
}

func (d *Doctor) schema(ctx context.Context) Finding {
	state, err := migrations.ReadState(ctx, d.Pool)
	if err == nil {
		err = state.Check()
	}
	return found("database", "schema", err, Failed, "the service does not start", fmt.Sprintf("version %d", state.Applied))
}

func (s server) role(ctx context.Context, d *Doctor) Finding {
	writes, err := database.MayWrite(ctx, d.Pool)
	f := found("database", "role", err, Failed, "the service cannot read", s.Role)
	switch {
	case err != nil:
	case s.Superuser || writes:
		f.Result, f.Follows = Warning, "it may write to the tables past the functions: use a member of fenceline_service"
	case !s.Member:
		f.Result, f.Follows = Failed, "it may not call the functions: GRANT fenceline_service TO it"
	}
	return f
}

func (d *Doctor) identity(ctx context.Context) Finding {
	epoch, err := lease.New(d.Pool).Epoch(ctx)
	switch {
	case errors.Is(err, database.ErrEpochInDoubt):
		return Finding{About: "database", Check: "identity", Result: OK, Detail: "not verified yet", Follows: "the first start of the service begins epoch 1"}
	case err == nil && !epoch.Verified:
		return Finding{
			About: "database", Check: "identity", Result: Warning, Detail: fmt.Sprintf("another than in epoch %d", epoch.Epoch),
			Follows: "nothing is granted, published or collected until an instance of the service has verified it",
		}
	}
	return found("database", "identity", err, Failed, "it could not be read", fmt.Sprintf("verified, epoch %d", epoch.Epoch))
}

// owner says whether the bucket is this catalog's, and the catalog's this bucket.
func (d *Doctor) owner(ctx context.Context) Finding {
	claimed, err := staging.Claimed(ctx, d.Pool, d.Bucket)
	f := found("database", "bucket's owner", err, Failed, "the service does not start", "this catalog")
	switch {
	case errors.Is(err, staging.ErrStorageUnavailable):
		f.Result, f.Follows = Warning, "it could not be read: the storage is away"
	case err == nil && !claimed:
		f.Detail, f.Follows = "nobody yet", "the first start of the service makes it this catalog's"
	}
	return f
}
