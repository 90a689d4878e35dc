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

// usualLimit bounds a statement, most of which is the wait for a lock or a connection, unless the context says otherwise; a sooner
// deadline of the context counts.
const usualLimit = 30 * time.Second

// limitKey is where a context keeps how long one statement may take.
type limitKey struct{}

// WithLimit bounds each statement that is sent under the context, for requests that may take longer as a whole: a
// database that hangs must not hold them up for as long as they may wait or read.
func WithLimit(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, d)
}

// Limit is how long one statement may take under the context.
func Limit(ctx context.Context) time.Duration {
	if limit, ok := ctx.Value(limitKey{}).(time.Duration); ok {
		return limit
	}
	return usualLimit
}

// Changes calls one of the catalog's functions, a transaction of its own, and collects the rows that it
// answers. Once it is sent nothing but the deadline of ctx interrupts it: a caller that has gone away must not
// turn a commit into a guess. Errors: *UnavailableError, with what is known of the outcome; any other error
// is a fault that changed nothing.
func Changes[T any](ctx context.Context, pool *pgxpool.Pool, query string, args pgx.NamedArgs) ([]T, error) {
	deadline := time.Now().Add(Limit(ctx))
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	connecting, connected := context.WithDeadline(ctx, deadline)
	defer connected()
	conn, err := pool.Acquire(connecting)
	if err != nil {
		return nil, &UnavailableError{Outcome: NotApplied, Cause: err} // nothing was sent
	}
	defer conn.Release()

	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	session := conn.Conn().PgConn()
	delete(session.CustomData(), warned)

	rows, err := conn.Query(ctx, query, args)
	if err != nil {
		return nil, fault(err, Unknown)
	}
	answers, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fault(err, Unknown)
	}
	if warning, ok := session.CustomData()[warned]; ok {
		return nil, &UnavailableError{Outcome: Unknown, Cause: fmt.Errorf("committed with a warning: %v", warning)}
	}
	return answers, nil
}

// Change is Changes for a function that answers exactly one row.
func Change[T any](ctx context.Context, pool *pgxpool.Pool, query string, args pgx.NamedArgs) (answer T, err error) {
	answers, err := Changes[T](ctx, pool, query, args)
	if err != nil {
		return answer, err
	}
	if len(answers) != 1 {
		return answer, fmt.Errorf("%d rows where one was expected", len(answers))
	}
	return answers[0], nil
}

// Outcome is what is known of a change that ended in an error.
type Outcome string

const (
	// NotApplied means that nothing was changed, nor will be.
	NotApplied Outcome = "not_applied"
	// Unknown means that the change may have been made: the same request, sent again, finds out.
	Unknown Outcome = "unknown"
)

// ErrUnavailable reports that the database cannot decide now.
var ErrUnavailable = errors.New("the database cannot be asked now")

// ErrEpochInDoubt reports that the database is not the one whose identity was last verified; it was
// restarted, promoted, restored or copied. Nothing was changed. It is an ErrUnavailable.
var ErrEpochInDoubt = fmt.Errorf("%w: its identity has to be verified first", ErrUnavailable)

// UnavailableError is an ErrUnavailable with what is known of the outcome.
type UnavailableError struct {
	Outcome Outcome
	Cause   error
}

// Error tells the outcome and the cause.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%v (outcome %s): %v", ErrUnavailable, e.Outcome, e.Cause)
}

// Is makes it ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap gives the driver's error.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// fault tells what err means; sent is the outcome of a statement that was sent and not answered.
func fault(err error, sent Outcome) error {
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &answer):
		return serverFault(answer)
	case pgconn.SafeToRetry(err):
		return &UnavailableError{Outcome: NotApplied, Cause: err}
	case isProgramming(err):
		return err
	default:
		return &UnavailableError{Outcome: sent, Cause: err}
	}
}

// serverFault tells what an error that the server answered means. An ERROR has rolled the transaction
// back; one that ends the session may have come after the commit.
func serverFault(e *pgconn.PgError) error {
	if e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC" {
		return &UnavailableError{Outcome: Unknown, Cause: e}
	}
	switch e.Code[:2] {
	case "08", "40", "53", "57", "58", "55": // connection, rolled back, resources, operator, system, not ready
		return &UnavailableError{Outcome: NotApplied, Cause: e}
	}
	if e.Code == "25006" { // a standby, or a database set to read only
		return &UnavailableError{Outcome: NotApplied, Cause: e}
	}
	return e
}

// isProgramming tells faults of the program from those of the connection: an answer that does not fit its struct. The
// change has been made then; the tests are there so that nobody else meets it.
func isProgramming(err error) bool {
	var scan pgx.ScanArgError
	return errors.As(err, &scan)
}
