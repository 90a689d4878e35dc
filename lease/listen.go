package lease

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/fencing"
)

// channel is where the database says that a lease has ended early. It may be missed: who waits asks again by
// itself.
const channel = "fenceline_lease"

// relisten is the pause before a lost connection is made anew.
const relisten = time.Second

// Listen wakes those who wait for a lease when the database says that it has ended, until ctx ends. It has a
// connection of its own, outside of the pool.
func (a *Authority) Listen(ctx context.Context, log *slog.Logger) {
	for ctx.Err() == nil {
		err := a.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		log.WarnContext(ctx, "ends of leases are not heard of; who waits asks again now and then", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

func (a *Authority) listenOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, a.pool.Config().ConnConfig.Copy())
	if err != nil {
		return fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // there is nothing left to say to it
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	a.line.wakeAll() // for what was missed before
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		if n.Payload == "" { // leases of many reports have ended at once
			a.line.wakeAll()
			continue
		}
		a.line.wake(fencing.ReportID(n.Payload))
	}
}
