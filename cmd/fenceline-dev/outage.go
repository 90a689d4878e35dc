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

// hangPostgres stops the server's processes where they are, all of them, and tells which they are.
func (s *servers) hangPostgres(ctx context.Context) (pids []int, err error) {
	const query = `SELECT pid FROM pg_stat_activity`
	pids = []int{s.postgres.PID()}
	err = asSuperuser(ctx, s.postgres, func(conn *pgx.Conn) error {
		if err := signalAll(pids, syscall.SIGSTOP); err != nil { // the first, so that it starts no more
			return err
		}
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return err
		}
		sessions, err := pgx.CollectRows(rows, pgx.RowTo[int])
		pids = append(pids, sessions...)
		return err
	})
	if err == nil {
		err = signalAll(pids, syscall.SIGSTOP)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hang PostgreSQL: %w", err), signalAll(pids, syscall.SIGCONT))
	}
	return pids, nil
}

// killWithSessions kills the server and all its sessions, so that none of them answers one last time.
func (s *servers) killWithSessions(ctx context.Context) error {
	pids, err := s.hangPostgres(ctx)
	if err != nil {
		return err
	}
	if err := signalAll(pids, syscall.SIGKILL); err != nil {
		return err
	}
	<-s.postgres.Done()
	return nil
}

// signalAll signals processes, some of which may have ended.
func signalAll(pids []int, signal syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
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
