package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
)

const model = "chat-model"

func ask(content string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(content)},
	}
}

func checkChat() error {
	client := clientWith("SLUICE_KEY")
	answer, err := client.Chat.Completions.New(context.Background(), ask("echo: Hello there"))
	if err != nil {
		return err
	}
	return errors.Join(
		expect("content", answer.Choices[0].Message.Content, "Hello there"),
		expect("finish reason", answer.Choices[0].FinishReason, "stop"),
		expect("model", answer.Model, model),
		expect("output tokens", answer.Usage.CompletionTokens, 2),
	)
}

// readStream joins a stream with the client's accumulator.
func readStream(params openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	client := clientWith("SLUICE_KEY")
	stream := client.Chat.Completions.NewStreaming(context.Background(), params)
	joined := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !joined.AddChunk(stream.Current()) {
			return nil, errors.New("a chunk does not fit to the ones before it")
		}
	}
	return &joined.ChatCompletion, stream.Err()
}

func checkStream() error {
	answer, err := readStream(ask("echo: Hello there"))
	if err != nil {
		return err
	}
	return errors.Join(
		expect("role", answer.Choices[0].Message.Role, "assistant"),
		expect("content", answer.Choices[0].Message.Content, "Hello there"),
		expect("finish reason", answer.Choices[0].FinishReason, "stop"),
		expect("total tokens", answer.Usage.TotalTokens, 0),
	)
}

func checkStreamWithUsage() error {
	params := ask("echo: Hello there")
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	answer, err := readStream(params)
	if err != nil {
		return err
	}
	return expect("output tokens", answer.Usage.CompletionTokens, 2)
}

func checkBrokenStream() error {
	client := clientWith("SLUICE_KEY")
	params := ask("Hello")
	params.Model = "breaking-model"
	stream := client.Chat.Completions.NewStreaming(context.Background(), params)
	text := ""
	for stream.Next() {
		text += stream.Current().Choices[0].Delta.Content
	}
	if stream.Err() == nil {
		return errors.New("the stream ended without an error")
	}
	return expect("text before the error", text, "Hello")
}

func tool(name, description string) openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name:        name,
		Description: openai.String(description),
		Parameters: openai.FunctionParameters{
			"type":                 "object",
			"properties":           map[string]any{"city": map[string]any{"type": "string"}},
			"required":             []string{"city"},
			"additionalProperties": false,
		},
	})
}

func newAnswer(params openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	client := clientWith("SLUICE_KEY")
	return client.Chat.Completions.New(context.Background(), params)
}

// checkTools calls two tools, sends back what they said and gets a text.
func checkTools(answerTo func(openai.ChatCompletionNewParams) (*openai.ChatCompletion, error)) error {
	params := ask("weather and population of Rome, please")
	params.Tools = []openai.ChatCompletionToolUnionParam{
		tool("get_weather", "Tells the weather"),
		tool("get_population", "Counts people"),
	}
	first, err := answerTo(params)
	if err != nil {
		return err
	}
	message := first.Choices[0].Message
	calls := ""
	params.Messages = append(params.Messages, message.ToParam())
	for _, call := range message.ToolCalls {
		calls += fmt.Sprintf("%s %s(%s) ", call.Type, call.Function.Name, call.Function.Arguments)
		params.Messages = append(params.Messages, openai.ToolMessage("42", call.ID))
	}
	wanted := `function get_weather({"city":"Rome"}) function get_population({"city":"Rome"}) `
	if err := expect("calls", calls, wanted); err != nil {
		return err
	}
	second, err := answerTo(params)
	if err != nil {
		return err
	}
	if second.Choices[0].Message.Content == "" {
		return errors.New("the answer to the tools is empty")
	}
	return errors.Join(
		expect("first finish reason", first.Choices[0].FinishReason, "tool_calls"),
		expect("second finish reason", second.Choices[0].FinishReason, "stop"),
	)
}

func checkStructuredOutput() error {
	params := ask("Describe Ada Lovelace.")
	params.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{
		OfJSONSchema: &openai.ResponseFormatJSONSchemaParam{
			JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{
				Name:   "person",
				Strict: openai.Bool(true),
				Schema: map[string]any{
					"type": "object",
					"properties": map[string]any{
						"name": map[string]any{"type": "string"},
						"age":  map[string]any{"type": "integer"},
					},
					"required":             []string{"name", "age"},
					"additionalProperties": false,
				},
			},
		},
	}
	answer, err := newAnswer(params)
	if err != nil {
		return err
	}
	var person struct {
		Name *string `json:"name"`
		Age  *int    `json:"age"`
	}
	if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &person); err != nil {
		return err
	}
	if person.Name == nil || person.Age == nil {
		return errors.New("a required field is missing")
	}
	return nil
}

func embed(input openai.EmbeddingNewParamsInputUnion) ([]openai.Embedding, error) {
	client := clientWith("SLUICE_KEY")
	params := openai.EmbeddingNewParams{Model: "embedding-model", Input: input}
	answer, err := client.Embeddings.New(context.Background(), params)
	if err != nil {
		return nil, err
	}
	return answer.Data, nil
}

func checkEmbeddings() error {
	one, err := embed(openai.EmbeddingNewParamsInputUnion{OfString: openai.String("one")})
	if err != nil {
		return err
	}
	texts := []string{"one", "two"}
	many, err := embed(openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts})
	if err != nil {
		return err
	}
	return errors.Join(
		expect("dimensions", len(one[0].Embedding), 1024),
		expect("vectors", len(many), 2),
		expect("the first vector", many[0].Embedding, one[0].Embedding),
	)
}

func checkEmbeddingsOfTokens() error {
	tokens := [][]int64{{9906, 1917}, {9906}}
	many, err := embed(openai.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: tokens})
	if err != nil {
		return err
	}
	return expect("vectors", len(many), 2)
}

func checkModels() error {
	client := clientWith("SLUICE_KEY")
	pages := client.Models.ListAutoPaging(context.Background())
	count := 0
	for pages.Next() {
		count++
	}
	if pages.Err() != nil {
		return pages.Err()
	}
	found, err := client.Models.Get(context.Background(), model)
	if err != nil {
		return err
	}
	if count < 2 {
		return fmt.Errorf("only %d models are listed", count)
	}
	return expect("model", found.ID, model)
}
