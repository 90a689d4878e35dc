package main

import (
	"context"
	"fmt"
	"time"
)

func (s *story) aAcquires(context.Context) (err error) {
	if s.a, err = s.startWorker("A", "a7"); err != nil {
		return err
	}
	said, err := s.a.hear("acquired")
	if err != nil {
		return err
	}
	s.fenceA = said.Fence
	s.tell("Worker A (process %d) acquires the lease on %q for %v. With it comes a fence, %s:\n"+
		"a number that grows with every grant.", s.a.pid(), demoReport, demoTTL, s.fenceA)
	s.show(said.Answer)
	return nil
}

func (s *story) aUploads(context.Context) error {
	said, err := s.a.hear("uploaded")
	if err != nil {
		return err
	}
	s.keyA = said.Key
	if !s.inBucket(s.keyA) {
		return fmt.Errorf("the object %s is not in the bucket", s.keyA)
	}
	s.tell("A has computed its report and uploaded it, to a place that is named after its fence: %s.\n"+
		"Uploading makes nothing visible; that is what publishing is for.", s.keyA)
	return nil
}

func (s *story) aIsPaused(context.Context) error {
	if err := s.a.pause(); err != nil {
		return err
	}
	// The word to publish lies ready: it is the first thing A does when it wakes up.
	if err := s.a.tellToPublish(); err != nil {
		return err
	}
	s.tell("A is stopped just before it publishes (SIGSTOP to process %d). A long garbage collection,\n"+
		"a suspended machine, a network that hangs: they all look like this.", s.a.pid())
	return nil
}

func (s *story) leaseExpires(ctx context.Context) error {
	got, err := s.askUntil(ctx, "/v1/reports/"+demoReport+"/lease", func(a answer) bool { return a.Status == 404 }, 5*demoTTL)
	if err != nil {
		return err
	}
	s.tell("A's lease has expired. A does not know: it stands still.")
	s.show(got)
	return nil
}

func (s *story) bPublishes(context.Context) (err error) {
	if s.b, err = s.startWorker("B", "b9"); err != nil {
		return err
	}
	acquired, err := s.b.hear("acquired")
	if err != nil {
		return err
	}
	s.fenceB = acquired.Fence
	if s.fenceB.Compare(s.fenceA) <= 0 {
		return fmt.Errorf("fence %s of B is not greater than %s of A", s.fenceB, s.fenceA)
	}
	uploaded, err := s.b.hear("uploaded")
	if err != nil {
		return err
	}
	s.keyB = uploaded.Key
	if err := s.b.tellToPublish(); err != nil {
		return err
	}
	published, err := s.b.hear("published")
	if err != nil {
		return err
	}
	if published.Version != 1 || published.Fence != s.fenceB {
		return fmt.Errorf("expected version 1 under %s: %s", s.fenceB, published.Answer)
	}
	s.tell("Worker B (process %d) takes over. It gets the next fence, %s, uploads and publishes: version 1.", s.b.pid(), s.fenceB)
	s.show(acquired.Answer)
	s.show(published.Answer)
	return nil
}

func (s *story) readerSeesB(ctx context.Context) error {
	text, err := s.expectB(ctx)
	if err != nil {
		return err
	}
	s.tell("A reader gets version 1, which is B's:")
	s.show(text)
	return nil
}

func (s *story) aPublishesTooLate(context.Context) error {
	if err := s.a.resume(); err != nil {
		return err
	}
	said, err := s.a.hear("refused", "published")
	if err != nil {
		return err
	}
	if said.Step != "refused" || said.Answer.Status != 409 || said.Code != "stale_fence" ||
		said.Fence != s.fenceA || said.Highest != s.fenceB {
		return fmt.Errorf("expected 409 stale_fence with %s below %s: %s", s.fenceA, s.fenceB, said.Answer)
	}
	s.tell("A wakes up (SIGCONT), believes that it still holds the lease, and publishes, as any program would.\n"+
		"It is refused: it presents the fence %s, and %s has been granted since.", s.fenceA, s.fenceB)
	s.show(said.Answer)
	return nil
}

func (s *story) readerStillSeesB(ctx context.Context) error {
	text, err := s.expectB(ctx)
	if err != nil {
		return err
	}
	s.tell("The reader still gets version 1. Without the comparison A's old figures would now have replaced B's.")
	s.show(text)
	return nil
}

func (s *story) collectorTakesA(ctx context.Context) error {
	const patience = 5 * demoRetention
	path := fmt.Sprintf("/v1/reports/%s/objects/%s/%s.csv", demoReport, s.fenceA, demoReport)
	started := time.Now()
	got, err := s.askUntil(ctx, path, func(a answer) bool {
		return a.Status == 404 || a.state() == "deleted"
	}, patience)
	if err != nil {
		return err
	}
	if s.inBucket(s.keyA) {
		return fmt.Errorf("the object %s is still in the bucket", s.keyA)
	}
	if !s.inBucket(s.keyB) {
		return fmt.Errorf("the visible object %s is gone from the bucket", s.keyB)
	}
	if _, err := s.expectB(ctx); err != nil {
		return err
	}
	s.tell("%v later, when its retention is over, the collector has deleted A's object, which nobody can ever see.\n"+
		"B's object is still there: it is what readers get.", time.Since(started).Round(time.Second))
	s.show(got)
	return nil
}

// expectB reads the report, which must be version 1 with B's bytes.
func (s *story) expectB(ctx context.Context) (text string, err error) {
	version, text, err := s.read(ctx)
	if err != nil {
		return "", err
	}
	if version != 1 || text != bytesOf("B") {
		return "", fmt.Errorf("expected version 1 with B's bytes, a reader got version %d: %q", version, text)
	}
	return text, nil
}
