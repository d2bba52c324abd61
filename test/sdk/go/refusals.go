package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const invalidRequest = "invalid_request_error"

func refusedWith(params openai.ChatCompletionNewParams, wanted wantedError) func() error {
	return func() error {
		_, err := newAnswer(params)
		return expectError(err, wanted)
	}
}

func checkKey(variable string) func() error {
	return func() error {
		client := clientWith(variable)
		_, err := client.Models.List(context.Background())
		return expectError(err, wantedError{status: 401, code: "invalid_api_key", kind: invalidRequest})
	}
}

// checkLargeBody sends 20 MB without a key, with their length and in chunks.
func checkLargeBody() error {
	url := os.Getenv("SLUICE_BASE_URL") + "/chat/completions"
	text := strings.Repeat("x", 20_000_000)
	for _, body := range []io.Reader{strings.NewReader(text), io.MultiReader(strings.NewReader(text))} {
		response, err := http.Post(url, "application/json", body)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != 401 {
			return fmt.Errorf("status %d", response.StatusCode)
		}
	}
	return nil
}

func checkInvalidModel() error {
	params := ask("Hello")
	params.Model = "no-such-model"
	wanted := wantedError{status: 400, code: "invalid_model", kind: invalidRequest, param: "model"}
	return refusedWith(params, wanted)()
}

func checkContextLength() error {
	params := ask(strings.Repeat("word ", 100))
	params.Model = "small-model"
	return refusedWith(params, wantedError{
		status: 400, code: "context_length_exceeded", kind: invalidRequest, param: "messages",
	})()
}

func checkField() error {
	params := ask("Hello")
	params.Temperature = openai.Float(3)
	return refusedWith(params, wantedError{
		status: 400, code: "decimal_above_max_value", kind: invalidRequest, param: "temperature",
	})()
}

// checkUnavailable holds whole and streamed answers of a model that fails to the same error.
func checkUnavailable(name string) func() error {
	return func() error {
		wanted := wantedError{
			status: 503, code: "model_unavailable", kind: "server_error",
			withHeaders: []string{"retry-after", "retry-after-ms"},
		}
		params := ask("Hello")
		params.Model = name
		if err := refusedWith(params, wanted)(); err != nil {
			return err
		}
		client := clientWith("SLUICE_KEY")
		stream := client.Chat.Completions.NewStreaming(context.Background(), params)
		for stream.Next() {
		}
		return expectError(stream.Err(), wanted)
	}
}

// checkLimit calls until the plan of the key is used up.
func checkLimit(variable, kind string) func() error {
	return func() error {
		client := clientWith(variable)
		params := ask("count: 1200")
		params.MaxTokens = openai.Int(1200)
		var err error
		for calls := 0; calls < 3 && err == nil; calls++ {
			_, err = client.Chat.Completions.New(context.Background(), params)
		}
		return expectError(err, wantedError{
			status: 429, code: "rate_limit_exceeded", kind: kind,
			withHeaders: []string{
				"retry-after", "retry-after-ms",
				"x-ratelimit-limit-requests", "x-ratelimit-limit-tokens",
				"x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens",
				"x-ratelimit-reset-requests", "x-ratelimit-reset-tokens",
			},
		})
	}
}

func checkUnknownModel() error {
	client := clientWith("SLUICE_KEY")
	_, err := client.Models.Get(context.Background(), "some/model:8b")
	return expectError(err, wantedError{
		status: 404, code: "model_not_found", kind: invalidRequest, param: "model",
	})
}

func checkUnknownPath() error {
	client := clientWith("SLUICE_KEY")
	err := client.Post(context.Background(), "nothing/here", map[string]any{}, nil)
	return expectError(err, wantedError{status: 404, code: "unknown_url", kind: invalidRequest})
}

func checkMethod() error {
	client := clientWith("SLUICE_KEY")
	_, err := client.Models.Delete(context.Background(), model)
	return expectError(err, wantedError{status: 405, kind: invalidRequest})
}

func checkBodyLimit() error {
	params := ask(strings.Repeat("x", 1_100_000))
	return refusedWith(params, wantedError{
		status: 413, code: "request_too_large", kind: invalidRequest,
	})()
}

func checkContentType() error {
	client := clientWith("SLUICE_KEY")
	plain := option.WithHeader("content-type", "text/plain")
	_, err := client.Chat.Completions.New(context.Background(), ask("Hello"), plain)
	return expectError(err, wantedError{
		status: 415, code: "unsupported_content_type", kind: invalidRequest,
	})
}
