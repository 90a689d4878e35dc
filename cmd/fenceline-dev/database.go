package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/stack"
)

// The database has the roles of a production one: its owner, who migrates and
// may create roles but is no superuser, and the service's.
const (
	databaseName = "fenceline"
	ownerRole    = "fenceline"
	serviceRole  = "fenceline_service"
)

// createDatabase creates the owner's role and the database where they are
// missing, and says whether the database is new.
func createDatabase(ctx context.Context, p *stack.Postgres) (created bool, err error) {
	err = asSuperuser(ctx, p, func(conn *pgx.Conn) error {
		hasRole, err := exists(ctx, conn, "SELECT FROM pg_roles WHERE rolname = $1", ownerRole)
		if err != nil {
			return err
		}
		hasDatabase, err := exists(ctx, conn, "SELECT FROM pg_database WHERE datname = $1", databaseName)
		if err != nil {
			return err
		}
		if !hasRole {
			if _, err := conn.Exec(ctx, "CREATE ROLE "+ownerRole+" LOGIN CREATEROLE"); err != nil {
				return err
			}
		}
		if hasDatabase {
			return nil
		}
		created = true
		_, err = conn.Exec(ctx, "CREATE DATABASE "+databaseName+" OWNER "+ownerRole)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("create the database: %w", err)
	}
	return created, nil
}

// letServiceLogIn gives a login to the role that the migrations have created
// without one.
func letServiceLogIn(ctx context.Context, p *stack.Postgres) error {
	err := asSuperuser(ctx, p, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "ALTER ROLE "+serviceRole+" LOGIN")
		return err
	})
	if err != nil {
		return fmt.Errorf("let %s log in: %w", serviceRole, err)
	}
	return nil
}

func asSuperuser(ctx context.Context, p *stack.Postgres, do func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, p.URL(stack.Superuser, "postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return do(conn)
}

func exists(ctx context.Context, conn *pgx.Conn, query, argument string) (found bool, err error) {
	err = conn.QueryRow(ctx, "SELECT EXISTS ("+query+")", argument).Scan(&found)
	return found, err
}
