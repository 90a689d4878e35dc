package client_test

import (
	"context"
	"errors"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/client"
)

// What the README shows, word for word.
func Example_file() {
	ctx, url, key := context.Background(), os.Getenv("FENCELINE_URL"), os.Getenv("FENCELINE_KEY")

	service := client.New(client.Config{URL: url, Key: key})
	lease := client.AcquireRequest{Report: "july", Holder: "worker-7", TTL: 30 * time.Second}
	err := service.Hold(ctx, lease, func(ctx context.Context, k *client.Capability) error {
		// ctx ends when the lease is lost; k carries the fence.
		if _, err := k.UploadFile(ctx, "july.csv", client.UploadRequest{ObjectID: "july.csv"}); err != nil {
			return err
		}
		_, err := k.Publish(ctx, client.PublishRequest{ObjectID: "july.csv"})
		return err
	})
	switch {
	case errors.Is(err, client.ErrBusy):
		log.Print("another worker is at it: ", err)
	case errors.Is(err, client.ErrStaleFence):
		log.Print("a newer worker has taken over: ", err)
	case err != nil:
		log.Fatal(err)
	}
}

func TestTheReadmeShowsTheExampleThatCompiles(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(source), "os.Getenv(\"FENCELINE_KEY\")\n\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	shown := "```go\n" + strings.ReplaceAll("\n"+body, "\n\t", "\n")[1:] + "\n```\n"
	if len(shown) < 100 || !strings.Contains(string(readme), shown) {
		t.Errorf("the README does not show:\n%s", shown)
	}
}
