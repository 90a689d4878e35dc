// Command healthcheck asks one URL and exits with 0 if the answer is 200, and with 1 otherwise. It stands in for
// curl in an image that has nothing but the service:
//
//	healthcheck http://127.0.0.1:8080/readyz
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

// timeout bounds the request; /readyz itself waits three seconds for what it asks.
const timeout = 5 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: healthcheck URL")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "healthcheck:", err)
		os.Exit(1)
	}
}

// check returns nil if url answers 200.
func check(url string) error {
	client := http.Client{Timeout: timeout}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, answer.Status)
	}
	return nil
}
