package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd prints what makes a shell complete command lines.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish. In bash: source <(fenceline completion bash)."`
}

// Run prints the script, which is made of the commands and flags as they are declared.
func (c *completionCmd) Run(out *console, app *kong.Kong) error {
	words := completions(app.Model.Node, nil)
	switch c.Shell {
	case "fish":
		return fishCompletion(out.Out, words)
	case "zsh":
		if _, err := io.WriteString(out.Out, "autoload -U +X bashcompinit && bashcompinit\n"); err != nil {
			return err
		}
	}
	return bashCompletion(out.Out, words)
}

// completion is what may follow a command: its subcommands, else its flags.
type completion struct {
	command string // the words after the program's name
	next    []string
}

// completions lists what may follow each command below a node.
func completions(node *kong.Node, path []string) []completion {
	own := completion{command: strings.Join(path, " ")}
	var below []completion
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			own.next = append(own.next, child.Name)
			below = append(below, completions(child, append(path[:len(path):len(path)], child.Name))...)
		}
	}
	if len(own.next) == 0 {
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				own.next = append(own.next, "--"+flag.Name)
			}
		}
	}
	return append([]completion{own}, below...)
}

// bashCompletion offers the words that follow the commands typed so far; after those, files.
func bashCompletion(to io.Writer, words []completion) error {
	var text strings.Builder
	text.WriteString(`_fenceline() {
  local cur=${COMP_WORDS[COMP_CWORD]} path="" next="" further=1 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --) return ;;
      -*) continue ;;
    esac
    next="${path:+$path }${COMP_WORDS[i]}"
    if ((further)) && _fenceline_next "$next" > /dev/null; then path=$next; else further=0; fi
  done
  next=$(_fenceline_next "$path")
  COMPREPLY=($(compgen -W "$next" -- "$cur"))
}
_fenceline_next() {
  case $1 in
`)
	for _, w := range words {
		fmt.Fprintf(&text, "    '%s') echo '%s' ;;\n", w.command, strings.Join(w.next, " "))
	}
	text.WriteString("    *) return 1 ;;\n  esac\n}\ncomplete -o default -F _fenceline fenceline\n")
	_, err := io.WriteString(to, text.String())
	return err
}

// fishCompletion offers the same, a line a word.
func fishCompletion(to io.Writer, words []completion) error {
	var text strings.Builder
	for _, w := range words {
		seen := "__fish_use_subcommand"
		if w.command != "" {
			seen = "__fish_seen_subcommand_from " + strings.Join(strings.Fields(w.command), "; and __fish_seen_subcommand_from ")
		}
		for _, next := range w.next {
			word := "-a " + next
			if flag, ok := strings.CutPrefix(next, "--"); ok {
				word = "-l " + flag
			}
			fmt.Fprintf(&text, "complete -c fenceline -n '%s' %s\n", seen, word)
		}
	}
	_, err := io.WriteString(to, text.String())
	return err
}
