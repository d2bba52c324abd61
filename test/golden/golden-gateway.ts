import { startGateway, type TestGateway } from "../support/gateway.ts";

/** A gateway whose models bring out every shape of answer. */
export function startGoldenGateway(): Promise<TestGateway> {
  return startGateway({
    sections: {
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: simulated-chat }]
  reasoning-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: simulated-reasoning }]
  failing-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: fault-overloaded-503 }]
  embedding-model:
    kind: embedding
    created: 2024-04-30
    context_window: 8192
    targets: [{ upstream: simulator, model: simulated-embedding }]`,
    },
  });
}

const city = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

export const weatherFunction = { name: "get_weather", description: "", parameters: city };
export const weatherTool = { type: "function", function: weatherFunction };
export const populationTool = {
  type: "function",
  function: { name: "get_population", description: "", parameters: city },
};
export const shellTool = { type: "custom", custom: { name: "shell", description: "" } };

/** Each asks for one shape of answer; the simulator answers the same every time. */
export const requests = {
  text: ask("echo: Hello there"),
  tool: { ...ask("weather in Rome"), tools: [weatherTool] },
  tools: { ...ask("weather and population of Rome"), tools: [weatherTool, populationTool] },
  refusal: ask("refuse: anything"),
  length: { ...ask("echo: one two three"), max_tokens: 2 },
  severalChoices: { ...ask("echo: Hi"), n: 2 },
  functionCall: { ...ask("weather in Rome"), functions: [weatherFunction] },
  customTool: { ...ask("shell"), tools: [shellTool] },
  logprobs: { ...ask("echo: Hi"), logprobs: true, top_logprobs: 1 },
  refusalLogprobs: { ...ask("refuse: anything"), logprobs: true },
  reasoning: { ...ask("echo: Hi"), model: "reasoning-model" },
} as const;

function ask(content: string) {
  return { model: "chat-model", messages: [{ role: "user", content }] };
}
