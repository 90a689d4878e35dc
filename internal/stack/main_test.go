package stack_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/fenceline/fenceline/internal/stack"
)

// TestMain lets the test binary play two other programs: a parent of servers
// that can be killed, and a service.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("STACK_TEST_PARENT_OF") != "":
		runParent(os.Getenv("STACK_TEST_PARENT_OF"))
	case len(os.Args) > 1 && os.Args[1] == "serve":
		runService()
	default:
		os.Exit(m.Run())
	}
}

// runParent starts both servers, prints how to find them and waits to be
// killed.
func runParent(dir string) {
	folder, err := stack.Claim(dir)
	exitOn(err)
	postgres, err := stack.StartPostgres(context.Background(), folder, stack.PostgresConfig{})
	exitOn(err)
	s3, err := stack.StartS3(context.Background(), folder, s3Config())
	exitOn(err)
	fmt.Println(postgres.URL(stack.Superuser, "postgres"), postgres.PID(), s3.PID())
	select {}
}

// runService is ready at once, unless it is told to be broken.
func runService() {
	if os.Getenv("STACK_TEST_BROKEN") != "" {
		exitOn(fmt.Errorf("a bad setting"))
	}
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	exitOn(http.ListenAndServe(os.Getenv("FENCELINE_LISTEN"), nil))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
