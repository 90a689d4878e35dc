// Package database opens the pool that the service works with, and runs its statements so that whoever
// asked for a change learns whether it happened, did not happen, or may have.
package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to reach the database.
type Config struct {
	// URL is a PostgreSQL connection URL, or its keyword form.
	URL string
	// Pool is the greatest number of connections; zero means 10. One is enough for everything to work:
	// no request ever holds one while it waits for another.
	Pool int32
	// Tracer is told of every statement; nil tells nobody.
	Tracer pgx.QueryTracer
	// Name is what the server shows of this client (application_name); empty means "fenceline".
	Name string
}

// CheckURL tells whether a connection URL, or its keyword form, can be read. It connects to nothing.
func CheckURL(url string) error {
	if _, err := pgconn.ParseConfig(url); err != nil {
		return fmt.Errorf("parse the database URL: %w", err)
	}
	return nil
}

// connectTimeout is how long one attempt to connect may take.
const connectTimeout = 5 * time.Second

// Open makes the pool. It does not connect yet; an error is one of the configuration.
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
	config.MaxConns = c.Pool
	if config.MaxConns == 0 {
		config.MaxConns = 10
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	parameters := config.ConnConfig.RuntimeParams
	if parameters["application_name"] == "" {
		parameters["application_name"] = c.Name
		if c.Name == "" {
			parameters["application_name"] = "fenceline"
		}
	}
	// The functions need it, and refuse to work at another.
	parameters["default_transaction_isolation"] = "read committed"
	parameters["timezone"] = "UTC"
	config.ConnConfig.OnNotice = noteWarning
	config.ConnConfig.Tracer = c.Tracer

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database pool: %w", err)
	}
	return pool, nil
}

// warned is where a connection keeps that the server has warned during the present statement.
const warned = "fenceline.warned"

// noteWarning remembers warnings. Our functions raise none; what the server warns of is that a commit was
// not replicated as it should be, and that is no error to the driver.
func noteWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warned] = n.Message
	}
}

// Rows runs a SELECT that changes nothing and collects its rows by column name. What keeps the database
// from answering, also within [Limit], is an *UnavailableError.
func Rows[T any](ctx context.Context, pool *pgxpool.Pool, query string, args pgx.NamedArgs) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit(ctx))
	defer cancel()
	rows, err := pool.Query(ctx, query, args)
	if err != nil {
		return nil, readFault(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, readFault(err)
	}
	return found, nil
}

// readFault tells what an error of a statement means that changes nothing, however it ended.
func readFault(err error) error {
	err = fault(err, NotApplied)
	var away *UnavailableError
	if errors.As(err, &away) {
		return &UnavailableError{Outcome: NotApplied, Cause: away.Cause}
	}
	return err
}

// Row is Rows for at most one row; found tells whether there was one.
func Row[T any](ctx context.Context, pool *pgxpool.Pool, query string, args pgx.NamedArgs) (row T, found bool, err error) {
	rows, err := Rows[T](ctx, pool, query, args)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}
