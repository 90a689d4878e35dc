// Command composecheck holds the repository's docker-compose.yml, and the Dockerfiles that it builds, against
// what can be known of them without running a container: that Compose can read it, that each FENCELINE_ variable and each
// flag in it is one that the program declares, and that what is started is pinned, watched, closed
// to the outside, in the right order, and free of secrets.
//
//	composecheck [REPOSITORY]
//
// It prints a line for each mistake, and exits with 1 if there is one.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	mistakes, err := checkRepository(context.Background(), root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "composecheck:", err)
		os.Exit(1)
	}
	for _, m := range mistakes {
		fmt.Fprintln(os.Stderr, "docker-compose.yml:", m)
	}
	if len(mistakes) > 0 {
		os.Exit(1)
	}
}

// checkRepository builds the program in root, and holds root's docker-compose.yml against it.
func checkRepository(ctx context.Context, root string) ([]string, error) {
	program, remove, err := buildProgram(ctx, root)
	if err != nil {
		return nil, err
	}
	defer remove()
	return check(ctx, filepath.Join(root, "docker-compose.yml"), program.declarations)
}
