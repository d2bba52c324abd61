// Checks the official Go client against a running gateway.
package main

func main() {
	runChecks([]check{
		{"chat", checkChat},
		{"a stream", checkStream},
		{"a stream with its usage", checkStreamWithUsage},
		{"tools over two turns", func() error { return checkTools(newAnswer) }},
		{"streamed tools over two turns", func() error { return checkTools(readStream) }},
		{"structured output", checkStructuredOutput},
		{"a response that is continued, read and deleted", checkResponse},
		{"a streamed response", checkResponseStream},
		{"400 of an unknown response", checkUnknownResponse},
		{"embeddings", checkEmbeddings},
		{"embeddings of token ids", checkEmbeddingsOfTokens},
		{"models", checkModels},
		{"401 of a revoked key", checkKey("SLUICE_REVOKED_KEY")},
		{"401 of another environment's key", checkKey("SLUICE_OTHER_KEY")},
		{"401 of a large body", checkLargeBody},
		{"400 invalid_model", checkInvalidModel},
		{"400 context_length_exceeded", checkContextLength},
		{"400 of a field", checkField},
		{"429 on requests", checkLimit("SLUICE_FEW_REQUESTS_KEY", "requests")},
		{"429 on tokens", checkLimit("SLUICE_FEW_TOKENS_KEY", "tokens")},
		{"503 of a throttled upstream", checkUnavailable("throttled-model")},
		{"503 of an overloaded upstream", checkUnavailable("overloaded-model")},
		{"503 of an upstream that is down", checkUnavailable("unreachable-model")},
		{"404 of a model", checkUnknownModel},
		{"404 of a path", checkUnknownPath},
		{"405", checkMethod},
		{"413", checkBodyLimit},
		{"415", checkContentType},
		{"an error in the middle of a stream", checkBrokenStream},
	})
}
