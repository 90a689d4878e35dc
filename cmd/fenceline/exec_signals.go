package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// relayed are the signals that are passed on. SIGCONT is not: whoever continues this process continues the command by
// [supervision.suspend], if the lease is still good.
func relayed() []os.Signal {
	return []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGTSTP,
	}
}

// listen begins to collect the signals that are meant for the command. One that this process was started to ignore, as
// nohup does with SIGHUP, stays ignored, by the command too.
func listen() (received <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 16)
	for _, s := range relayed() {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

// asksToEnd tells whether a signal asks a program to end.
func asksToEnd(s os.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// interruption is the end that a signal brings about where there is no command to pass it on to.
type interruption struct {
	by    os.Signal
	while string
}

func (i interruption) Error() string {
	return fmt.Sprintf("interrupted (%s) while %s", i.by, i.while)
}

// code is what a shell would say of a program that the signal has ended.
func (i interruption) code() int {
	number, _ := i.by.(syscall.Signal) // as all are
	return 128 + int(number)
}

// interruptible ends a context, with an [interruption] as its cause, at the first signal that asks to end.
func interruptible(ctx context.Context, signals <-chan os.Signal, while string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		for {
			select {
			case s := <-signals:
				switch {
				case asksToEnd(s):
					cancel(interruption{s, while})
					return
				case s == syscall.SIGTSTP:
					stopSelf()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-listened
	}
}

// interruptionOf is the interruption that has ended a context, if one has.
func interruptionOf(ctx context.Context) (found interruption, ok bool) {
	ok = errors.As(context.Cause(ctx), &found)
	return found, ok
}

// stopSelf stops this process until it is continued. The signal may reach another thread first, so that this one would run
// on for a moment: only being continued ends the wait.
func stopSelf() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) == nil {
		<-continued
	}
}
