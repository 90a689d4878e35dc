package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/fenceline/fenceline/client"
)

// A worker leases a report, stages its bytes under the fence of the lease and publishes
// them. The work's context ends when the lease does, and where a newer worker has taken
// over, the publish is refused.
func Example() {
	service, stop := exampleService()
	defer stop()

	request := client.AcquireRequest{Report: "july", Holder: "worker-7", TTL: 30 * time.Second}
	err := service.Hold(context.Background(), request, func(ctx context.Context, k *client.Capability) error {
		table := strings.NewReader("region,total\nnorth,42\n")
		_, err := k.Upload(ctx, client.UploadRequest{ObjectID: "july.csv", Body: table})
		if err != nil {
			return err
		}
		published, err := k.Publish(ctx, client.PublishRequest{ObjectID: "july.csv"})
		if err != nil {
			return err
		}
		fmt.Println(published.Result, "version", published.Version, "under fence", k.Fence())
		return nil
	})
	switch {
	case errors.Is(err, client.ErrBusy):
		fmt.Println("another worker is on it")
	case errors.Is(err, client.ErrStaleFence), errors.Is(err, client.ErrLeaseLost):
		fmt.Println("a newer worker has taken over:", err)
	case err != nil:
		log.Fatal(err)
	}
	// Output: applied version 1 under fence 1.1
}

// Before work that is expensive, or that nothing fences, a worker asks whether there is
// time for it.
func ExampleCapability_Enough() {
	service, stop := exampleService()
	defer stop()
	ctx := context.Background()
	k, err := service.Acquire(ctx, client.AcquireRequest{Report: "july", Holder: "worker-7", TTL: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	if err := k.Enough(10 * time.Second); err == nil {
		fmt.Println("there is time")
	}
	if err := k.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(k.Valid(), context.Cause(k.Context()))
	// Output:
	// there is time
	// false lease lost: it was released
}

// A reader fetches the newest version of a report. Its bytes are good once they have been
// read to the end without an error.
func ExampleClient_Open() {
	service, stop := exampleService()
	defer stop()
	content, err := service.Open(context.Background(), "july")
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := io.Copy(os.Stdout, content); err != nil {
		log.Fatal(err)
	}
	// Output: abc
}

// A subscriber is told of each version as it becomes visible.
func ExampleClient_Updates() {
	service, stop := exampleService()
	defer stop()
	for published, err := range service.Updates(context.Background(), "july", 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("version", published.Version)
		break
	}
	// Output: version 1
}
