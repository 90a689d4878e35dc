package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/stack"
)

// killPostgres kills the server, whose sessions notice on their own and end.
func (s *servers) killPostgres() error {
	if err := syscall.Kill(s.postgres.PID(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	<-s.postgres.Done()
	return nil
}

// hangPostgres stops the server's processes where they are, all of them, until they are woken.
func (s *servers) hangPostgres(ctx context.Context) (wake func() error, err error) {
	const query = `SELECT pid FROM pg_stat_activity`
	pids := []int{s.postgres.PID()}
	signal := func(sig syscall.Signal) error {
		for _, pid := range pids {
			if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("signal PostgreSQL's process %d: %w", pid, err)
			}
		}
		return nil
	}
	wake = func() error { return signal(syscall.SIGCONT) }
	err = asSuperuser(ctx, s.postgres, func(conn *pgx.Conn) error {
		if err := signal(syscall.SIGSTOP); err != nil { // the first, so that it starts no more
			return err
		}
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return err
		}
		sessions, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return err
		}
		pids = append(pids, sessions...)
		return nil
	})
	if err == nil {
		err = signal(syscall.SIGSTOP)
	}
	if err != nil {
		return nil, errors.Join(err, wake())
	}
	return wake, nil
}

// revivePostgres starts a server that was killed again, on its data.
func (s *servers) revivePostgres(ctx context.Context, folder *stack.Folder) error {
	// While a session of the old server lives, the new one refuses to start.
	for patience := time.After(time.Minute); ; {
		started, err := stack.StartPostgres(ctx, folder, throwawayPostgres())
		if err == nil {
			s.postgres = started
			return nil
		}
		select {
		case <-patience:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// reviveS3 starts a server that was stopped again, at the same address.
func (s *servers) reviveS3(ctx context.Context, folder *stack.Folder) error {
	started, err := stack.StartS3(ctx, folder, stack.S3Config{
		AccessKey: s.state.AccessKey, SecretKey: s.state.SecretKey, Port: s.s3.Port,
	})
	if err != nil {
		return err
	}
	if started.Port != s.s3.Port {
		return fmt.Errorf("the S3 server's port %d was taken in the meantime", s.s3.Port)
	}
	s.s3 = started
	return nil
}
