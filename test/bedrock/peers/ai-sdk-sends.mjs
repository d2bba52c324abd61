// Prints what the AI SDK's Bedrock provider sends for the requests on standard input.
//
// In: a JSON list of {name, model, body}. Out: a JSON object of {path, body} or {refused} by name.
// The SDK has a prompt form of its own: `promptOf` and `optionsOf` say how OpenAI's maps to it.

import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { readFileSync, writeFileSync } from "node:fs";

const answer = {
  output: { message: { role: "assistant", content: [{ text: "ok" }] } },
  stopReason: "end_turn",
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  metrics: { latencyMs: 1 },
};

let sent;
const provider = createAmazonBedrock({
  region: "us-east-1",
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "secret",
  async fetch(url, init) {
    const path = decodeURIComponent(new URL(String(url)).pathname);
    const text = typeof init.body === "string" ? init.body : new TextDecoder().decode(init.body);
    sent = { path, body: JSON.parse(text) };
    return Response.json(answer);
  },
});

async function ask({ model, body }) {
  sent = undefined;
  try {
    await provider(model).doGenerate({ prompt: promptOf(body.messages), ...optionsOf(body) });
  } catch (error) {
    if (sent === undefined) return { refused: { message: `${error.name}: ${error.message}` } };
  }
  return sent;
}

function promptOf(messages) {
  const names = new Map();
  const prompt = [];
  for (const message of messages) {
    const { role, content, tool_calls: calls = [] } = message;
    switch (role) {
      case "system":
      case "developer":
        prompt.push({ role: "system", content: textIn(content), ...cached(message, content) });
        break;
      case "user":
        prompt.push({ role: "user", content: partsOf(content).map(partOf), ...cached(message) });
        break;
      case "assistant": {
        const words = content === null ? [] : [{ type: "text", text: textIn(content) }];
        const made = calls.map((call) => {
          const { name, arguments: input } = call.function;
          names.set(call.id, name);
          const parsed = input === "" ? {} : JSON.parse(input);
          return { type: "tool-call", toolCallId: call.id, toolName: name, input: parsed };
        });
        prompt.push({ role: "assistant", content: [...words, ...made] });
        break;
      }
      case "tool": {
        const toolCallId = message.tool_call_id;
        const output = { type: "text", value: textIn(content) };
        const toolName = names.get(toolCallId);
        const result = { type: "tool-result", toolCallId, toolName, output };
        const last = prompt.at(-1);
        if (last?.role === "tool") last.content.push(result);
        else prompt.push({ role: "tool", content: [result] });
      }
    }
  }
  return prompt;
}

function partsOf(content) {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function textIn(content) {
  return partsOf(content)
    .map(({ text }) => text)
    .join("");
}

function partOf(part) {
  const { type, text, image_url: image, file } = part;
  if (type === "text") return { type, text, ...cached(part) };
  const [, mediaType, data] = /^data:([^;]+);base64,(.*)$/.exec(image?.url ?? file.file_data);
  return { type: "file", mediaType, data: { type: "data", data }, filename: file?.filename };
}

/** The provider's name of a cache point. */
function cached(...places) {
  const marked = places.flat().some((place) => place?.cache_control !== undefined);
  const cachePoint = { type: "default" };
  return marked
    ? { providerOptions: { amazonBedrock: { cachePoint }, bedrock: { cachePoint } } }
    : {};
}

function optionsOf(body) {
  const { response_format: format, tools, tool_choice: choice, service_tier: serviceTier } = body;
  const tier = serviceTier === undefined ? {} : { serviceTier };
  return {
    maxOutputTokens: body.max_completion_tokens ?? body.max_tokens,
    temperature: body.temperature,
    topP: body.top_p,
    topK: body.top_k,
    seed: body.seed,
    frequencyPenalty: body.frequency_penalty,
    stopSequences: body.stop === undefined ? undefined : [body.stop].flat(),
    reasoning: body.reasoning_effort,
    responseFormat: responseFormatOf(format),
    tools: tools?.map((tool) => ({
      type: "function",
      name: tool.function.name,
      description: tool.function.description,
      inputSchema: tool.function.parameters,
      strict: tool.function.strict,
      ...cached(tool),
    })),
    toolChoice: toolChoiceOf(choice),
    providerOptions: { bedrock: tier },
  };
}

function responseFormatOf(format) {
  if (format === undefined) return undefined;
  const { name, schema } = format.json_schema ?? {};
  return { type: "json", name, schema };
}

function toolChoiceOf(choice) {
  if (choice === undefined || typeof choice === "string") return choice && { type: choice };
  return { type: "tool", toolName: choice.function.name };
}

const results = {};
for (const request of JSON.parse(readFileSync(0, "utf8"))) {
  results[request.name] = await ask(request);
}
writeFileSync(1, JSON.stringify(results));
