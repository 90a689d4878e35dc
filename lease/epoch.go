package lease

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Epoch is a span in the life of the database: from one verification of its identity to the next.
type Epoch struct {
	Epoch    int32
	Floor    int32 // fences of epochs below it are closed
	BeganAt  time.Time
	Reason   string
	Verified bool // whether the database is still the one that was verified
}

// Epoch reads the present epoch. Error: database.ErrUnavailable.
func (a *Authority) Epoch(ctx context.Context) (Epoch, error) {
	const query = `
		SELECT epoch, floor_epoch AS floor, began_at, reason, epoch_verified() AS verified
		FROM epoch
		ORDER BY epoch DESC
		LIMIT 1`
	e, found, err := database.Row[Epoch](ctx, a.pool, query, nil)
	if err == nil && !found {
		err = database.ErrEpochInDoubt
	}
	if err != nil {
		return Epoch{}, fmt.Errorf("read the epoch: %w", err)
	}
	return e, nil
}

// VerifyEpoch compares the identity of the database with the one that was last verified. Where it is a new
// one, the next epoch begins; the counters of the fences go on, and all fences stay valid. It returns the
// present epoch and whether it has just begun. Error: database.ErrUnavailable, also on a standby.
func (a *Authority) VerifyEpoch(ctx context.Context) (epoch int32, advanced bool, err error) {
	const query = `SELECT status, epoch FROM verify_epoch()`
	type answer struct {
		Status string
		Epoch  *int32
	}
	got, err := database.Change[answer](ctx, a.pool, query, pgx.NamedArgs{})
	if err == nil && got.Status == "standby" {
		err = fmt.Errorf("%w: it is a standby", database.ErrUnavailable)
	}
	if err != nil {
		return 0, false, fmt.Errorf("verify the database's identity: %w", err)
	}
	return *got.Epoch, got.Status == "advanced", nil
}

// watchEvery is how soon the service notices that the database was restarted under it. Until then all
// changes are refused.
const watchEvery = time.Second

// watchTimeout bounds one look: a connection that has gone silent must not end the watch.
const watchTimeout = 10 * time.Second

// WatchEpoch verifies the identity of the database again and again until ctx ends.
func (a *Authority) WatchEpoch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		round, cancel := context.WithTimeout(ctx, watchTimeout)
		epoch, advanced, err := a.verifyIfChanged(round)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			log.WarnContext(ctx, "the database's identity is not verified: changes are refused", "error", err)
		case advanced:
			log.InfoContext(ctx, "a new epoch has begun", "epoch", epoch)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// verifyIfChanged looks without the exclusive barrier first, which holds every change up.
func (a *Authority) verifyIfChanged(ctx context.Context) (epoch int32, advanced bool, err error) {
	present, err := a.Epoch(ctx)
	if err == nil && present.Verified {
		return present.Epoch, false, nil
	}
	return a.VerifyEpoch(ctx)
}
