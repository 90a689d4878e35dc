package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/fenceline/fenceline/client"
)

// A worker leases a report, uploads its bytes under the fence of the lease and publishes
// them. Where the lease was lost on the way, a newer worker has taken over, and the
// publish is refused.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	service := client.New(client.Config{URL: os.Getenv("FENCELINE_URL"), Key: os.Getenv("FENCELINE_KEY")})

	lease, err := service.Acquire(ctx, client.AcquireRequest{Report: "july", Holder: "worker-7", TTL: 30 * time.Second})
	if errors.Is(err, client.ErrBusy) {
		fmt.Println("another worker is on it")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer service.Release(context.WithoutCancel(ctx), lease.Report, lease.ID)

	report := "region,total\nnorth,42\n"
	size, sum := int64(len(report)), sha256.Sum256([]byte(report))
	reserved, err := service.Reserve(ctx, client.ReserveRequest{
		Report: "july", Fence: lease.Fence, ObjectID: "july.csv",
		Declaration: client.Declaration{ContentType: "text/csv", Filename: "july.csv", Size: &size, SHA256: hex.EncodeToString(sum[:])},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := service.Upload(ctx, reserved, strings.NewReader(report), size); err != nil {
		log.Fatal(err)
	}
	published, err := service.Publish(ctx, client.PublishRequest{Report: "july", Fence: lease.Fence, ObjectID: "july.csv"})
	switch {
	case errors.Is(err, client.ErrStaleFence):
		fmt.Println("a newer worker has taken over:", err)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("published version", published.Version)
	}
}

// A reader fetches the newest version of a report. Its bytes are good once they have been
// read to the end without an error.
func ExampleClient_Open() {
	ctx := context.Background()
	service := client.New(client.Config{URL: os.Getenv("FENCELINE_URL"), Key: os.Getenv("FENCELINE_KEY")})

	content, err := service.Open(ctx, "july")
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := io.Copy(os.Stdout, content); err != nil {
		log.Fatal(err)
	}
}
