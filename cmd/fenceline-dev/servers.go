package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fenceline/fenceline/internal/stack"
)

// servers are the two servers that the service needs, running in a folder.
type servers struct {
	postgres *stack.Postgres
	s3       *stack.S3
	state    state
}

// startServers starts both, and keeps their addresses and credentials in the
// folder for the next start. Each change edits how the S3 server is run.
func startServers(ctx context.Context, f *stack.Folder, cfg stack.PostgresConfig, changes ...func(*stack.S3Config)) (*servers, error) {
	st, err := readState(f)
	if err != nil {
		return nil, err
	}
	s := &servers{state: st}
	if s.postgres, err = stack.StartPostgres(ctx, f, cfg); err != nil {
		return nil, err
	}
	storage := stack.S3Config{AccessKey: st.AccessKey, SecretKey: st.SecretKey, Port: st.S3Port}
	for _, change := range changes {
		change(&storage)
	}
	s.s3, err = stack.StartS3(ctx, f, storage)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.state.S3Port = s.s3.Port
	if err := s.state.write(f); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop ends both servers.
func (s *servers) stop() error {
	var err error
	if s.s3 != nil {
		err = s.s3.Stop()
	}
	return errors.Join(err, s.postgres.Stop())
}

// failure says which server has ended although nobody stopped it; nil if both
// run.
func (s *servers) failure() error {
	select {
	case <-s.postgres.Done():
		return fmt.Errorf("a server ended unexpectedly: %w", s.postgres.Err())
	case <-s.s3.Done():
		return fmt.Errorf("a server ended unexpectedly: %w", s.s3.Err())
	default:
		return nil
	}
}

// storageVariables are how AWS clients find the S3 server.
func (s *servers) storageVariables() []string {
	return []string{
		"AWS_ENDPOINT_URL_S3=" + s.s3.Endpoint,
		"AWS_REGION=" + stack.Region,
		"AWS_ACCESS_KEY_ID=" + s.state.AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + s.state.SecretKey,
	}
}

// testVariables are how the tests find the two servers.
func (s *servers) testVariables() []string {
	return append(s.storageVariables(),
		"FENCELINE_TEST_DATABASE_URL="+s.postgres.URL(stack.Superuser, "postgres"),
		"FENCELINE_TEST_S3_ENDPOINT="+s.s3.Endpoint,
	)
}
