package main

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

func askResponse(input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(input)},
	}
}

func checkResponse() error {
	client := clientWith("SLUICE_KEY")
	answer, err := client.Responses.New(context.Background(), askResponse("echo: Hello there"))
	if err != nil {
		return err
	}
	next := askResponse("echo: And again")
	next.PreviousResponseID = openai.String(answer.ID)
	continued, err := client.Responses.New(context.Background(), next)
	if err != nil {
		return err
	}
	stored, err := client.Responses.Get(context.Background(), answer.ID, responses.ResponseGetParams{})
	if err != nil {
		return err
	}
	return errors.Join(
		expect("text", answer.OutputText(), "Hello there"),
		expect("status", string(answer.Status), "completed"),
		expect("output tokens", answer.Usage.OutputTokens, int64(2)),
		expect("continued text", continued.OutputText(), "And again"),
		expect("stored text", stored.OutputText(), "Hello there"),
		client.Responses.Delete(context.Background(), answer.ID),
	)
}

func checkResponseStream() error {
	client := clientWith("SLUICE_KEY")
	stream := client.Responses.NewStreaming(context.Background(), askResponse("echo: Hello there"))
	text, last := "", ""
	for stream.Next() {
		event := stream.Current()
		last = event.Type
		if event.Type == "response.output_text.delta" {
			text += event.Delta
		}
	}
	return errors.Join(
		stream.Err(),
		expect("text", text, "Hello there"),
		expect("last event", last, "response.completed"),
	)
}

func checkUnknownResponse() error {
	client := clientWith("SLUICE_KEY")
	params := askResponse("echo: Hello there")
	params.PreviousResponseID = openai.String("resp_1")
	_, err := client.Responses.New(context.Background(), params)
	var refused *openai.Error
	if !errors.As(err, &refused) {
		return errors.New("no error of the API")
	}
	return errors.Join(
		expect("status", refused.StatusCode, 400),
		expect("code", refused.Code, "previous_response_not_found"),
	)
}
