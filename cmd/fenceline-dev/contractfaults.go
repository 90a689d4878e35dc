package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/contract"
	"github.com/fenceline/fenceline/internal/stack"
)

// walkedServer is the platform as the walker of the contract sees it.
func walkedServer(ctx context.Context, p *platform, folder *stack.Folder) (*contract.Server, error) {
	binary, err := fencelineBinary()
	if err != nil {
		return nil, err
	}
	key := func(args ...string) (string, error) {
		owner := environment(p.settings, []string{"FENCELINE_DATABASE_URL=" + p.ownerURL()})
		return output(ctx, owner, binary, append([]string{"key"}, args...)...)
	}
	keys := map[contract.Role]string{}
	for role, secret := range p.state.Keys {
		keys[contract.Role(role)] = secret
	}
	return &contract.Server{
		URL:  p.service.URL,
		Keys: keys,
		NewKey: func(role contract.Role, pattern string) (string, error) {
			return key("create", "--role", string(role), "--pattern", pattern, "--name", "walk")
		},
		EndKey: func(secret string) error {
			_, err := key("revoke", secret)
			return err
		},
		Faults: faultsOf(ctx, p, folder),
	}, nil
}

// faultsOf are what the contract's cases need to happen to the servers, done for real.
func faultsOf(ctx context.Context, p *platform, folder *stack.Folder) contract.Faults {
	return contract.Faults{
		ExhaustCounter: func(report string) error {
			const query = `UPDATE report SET granted_counter = 9223372036854775807 WHERE report_id = $1`
			return p.asOwner(ctx, query, report)
		},
		Overwrite:    func(key, content string) error { return p.overwrite(ctx, key, content) },
		HoldReport:   func(report string) (func() error, error) { return p.holdReport(ctx, report) },
		AwaitBlocked: func() error { return p.awaitBlocked(ctx) },
		KillDatabase: func() (func() error, error) {
			return func() error { return p.revivePostgres(ctx, folder) }, p.killWithSessions(ctx)
		},
		HangDatabase: func() (func() error, error) {
			pids, err := p.hangPostgres(ctx)
			return func() error { return signalAll(pids, syscall.SIGCONT) }, err
		},
		LockDatabase: func() (func() error, error) {
			return func() error { return p.setReadOnly(ctx, "off") }, p.setReadOnly(ctx, "on")
		},
		StopStorage: func() (func() error, error) {
			return func() error { return p.reviveS3(ctx, folder) }, p.s3.Stop()
		},
		TakeTable: func(table string) (func() error, error) {
			name, taken := pgx.Identifier{table}.Sanitize(), pgx.Identifier{"taken_" + table}.Sanitize()
			mend := func() error { return p.asOwner(ctx, "ALTER TABLE "+taken+" RENAME TO "+name) }
			return mend, p.asOwner(ctx, "ALTER TABLE "+name+" RENAME TO "+taken)
		},
	}
}

// asOwner runs one statement as the owner of the database.
func (p *platform) asOwner(ctx context.Context, query string, args ...any) (err error) {
	conn, err := pgx.Connect(ctx, p.ownerURL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, query, args...); err != nil {
		return fmt.Errorf("as the owner: %w", err)
	}
	return nil
}

// holdReport locks a report's row until letGo is called, or the database dies.
func (p *platform) holdReport(ctx context.Context, report string) (letGo func() error, err error) {
	const query = `SELECT FROM report WHERE report_id = $1 FOR UPDATE`
	conn, err := pgx.Connect(ctx, p.ownerURL())
	if err != nil {
		return nil, err
	}
	letGo = func() error { return conn.Close(context.WithoutCancel(ctx)) } // which rolls back
	if _, err = conn.Exec(ctx, "BEGIN"); err == nil {
		_, err = conn.Exec(ctx, query, report)
	}
	if err != nil {
		return nil, errors.Join(err, letGo())
	}
	return letGo, nil
}

// awaitBlocked returns once a session waits for a lock.
func (p *platform) awaitBlocked(ctx context.Context) error {
	const query = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock')`
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return asSuperuser(ctx, p.postgres, func(conn *pgx.Conn) error {
		for blocked := false; !blocked; <-time.After(20 * time.Millisecond) {
			if err := conn.QueryRow(ctx, query, databaseName).Scan(&blocked); err != nil {
				return fmt.Errorf("wait until a session waits: %w", err)
			}
		}
		return nil
	})
}

// setReadOnly lets the database be read only, or no longer, for all sessions, which begin anew.
func (p *platform) setReadOnly(ctx context.Context, value string) error {
	const query = `
		SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity -- and waits for their end
		WHERE datname = $1 AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
	return asSuperuser(ctx, p.postgres, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "ALTER DATABASE "+databaseName+" SET default_transaction_read_only = "+value); err != nil {
			return fmt.Errorf("make the database read only: %w", err)
		}
		_, err := conn.Exec(ctx, query, databaseName)
		return err
	})
}

// overwrite writes bytes past the service, with the storage's own credentials.
func (p *platform) overwrite(ctx context.Context, key, content string) error {
	_, err := storageClient(p.servers).PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: aws.String(key), Body: strings.NewReader(content),
	})
	if err != nil {
		return fmt.Errorf("overwrite %s: %w", key, err)
	}
	return nil
}
