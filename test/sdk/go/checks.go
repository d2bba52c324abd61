package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

type check struct {
	name string
	run  func() error
}

// runChecks says of each check whether it passed, one line a check.
func runChecks(checks []check) {
	failed := 0
	for _, each := range checks {
		if err := each.run(); err != nil {
			failed++
			fmt.Printf("failed: %s: %v\n", each.name, err)
			continue
		}
		fmt.Printf("ok: %s\n", each.name)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func clientWith(keyVariable string) openai.Client {
	return openai.NewClient(
		option.WithBaseURL(os.Getenv("SLUICE_BASE_URL")),
		option.WithAPIKey(os.Getenv(keyVariable)),
		option.WithMaxRetries(0),
	)
}

// expect compares printed forms, which are what a reader of a failure sees.
func expect(what string, actual, wanted any) error {
	if fmt.Sprint(actual) == fmt.Sprint(wanted) {
		return nil
	}
	return fmt.Errorf("%s: expected %v, got %v", what, wanted, actual)
}

type wantedError struct {
	status      int
	code        string
	kind        string
	param       string
	withHeaders []string
}

// expectError holds the error of a call to its status and to the fields of its body.
func expectError(err error, wanted wantedError) error {
	var apiError *openai.Error
	if !errors.As(err, &apiError) {
		return fmt.Errorf("expected an API error, got %T: %v", err, err)
	}
	for _, name := range append(wanted.withHeaders, "x-request-id") {
		if apiError.Response.Header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	return errors.Join(
		expect("status", apiError.StatusCode, wanted.status),
		expect("code", apiError.Code, wanted.code),
		expect("type", apiError.Type, wanted.kind),
		expect("param", apiError.Param, wanted.param),
	)
}
