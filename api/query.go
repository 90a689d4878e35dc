package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// checkQuery refuses a query that names a parameter that the route does not
// know, or one twice, or that holds text that the database cannot.
func checkQuery(known []string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			query, err := url.ParseQuery(c.Request().URL.RawQuery)
			if err != nil {
				return invalid("query", "The query is not properly encoded.")
			}
			for name, values := range query {
				switch {
				case !slices.Contains(known, name):
					return invalid(printable(name), "There is no such parameter here.")
				case len(values) > 1:
					return invalid(name, "The parameter appears more than once.")
				case !utf8.ValidString(values[0]) || strings.ContainsRune(values[0], 0):
					return invalid(name, "The value must be UTF-8 without the character U+0000.")
				}
			}
			return next(c)
		}
	}
}

// queryBool is a parameter that is `true` or `false`; absent it is false.
func queryBool(c echo.Context, name string) (bool, error) {
	switch c.QueryParam(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, invalid(name, fmt.Sprintf("%s must be true or false.", name))
}

// printable makes a name that came from outside fit for a JSON string.
func printable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "�"), "�")
}
