import {
  BedrockRuntimeClient,
  ConverseStreamCommand,
  type ConverseStreamCommandInput,
  type ConverseStreamOutput,
} from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../simulator.ts";
import type { TruthEntry } from "../call.ts";
import { demoCredentials } from "./credentials.ts";

let simulator: Simulator;
let client: BedrockRuntimeClient;
let ended: (entry: TruthEntry) => void = () => {};

beforeAll(() => {
  simulator = startSimulator({ onTruth: (entry) => ended(entry) });
  client = clientWith(1);
});
afterAll(async () => {
  client.destroy();
  await simulator[Symbol.asyncDispose]();
});

function clientWith(maxAttempts: number): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    endpoint: new URL(simulator.url).origin,
    region: "us-east-1",
    credentials: demoCredentials,
    requestHandler: new NodeHttpHandler(),
    maxAttempts,
  });
}

/** Resolves to the truth entry of the next call that ends. */
function nextTruth(): Promise<TruthEntry> {
  return new Promise((resolve) => {
    ended = resolve;
  });
}

interface Asking extends Omit<ConverseStreamCommandInput, "modelId" | "messages"> {
  readonly model?: string;
  readonly say?: string;
}

function command({ model = "simulated-model", say = "count: 3", ...more }: Asking) {
  return new ConverseStreamCommand({
    modelId: model,
    messages: [{ role: "user", content: [{ text: say }] }],
    ...more,
  });
}

/** Reads a stream to its end; returns the events and the error, if any. */
async function converse(asking: Asking = {}) {
  const events: ConverseStreamOutput[] = [];
  try {
    const { stream = [] } = await client.send(command(asking));
    for await (const event of stream) events.push(event);
    return { events, error: undefined };
  } catch (error) {
    return { events, error };
  }
}

const faulty = (mode: string): string => `simulated-fault-${mode}`;

function textOf(events: readonly ConverseStreamOutput[]): string {
  return events.map((event) => event.contentBlockDelta?.delta?.text ?? "").join("");
}

describe("the official client", () => {
  test("reads a text to its end, with the usage", async () => {
    const truth = nextTruth();
    const { events, error } = await converse();
    expect(error).toBeUndefined();
    expect(textOf(events)).toBe("1 2 3");
    expect(events[0]).toMatchObject({ messageStart: { role: "assistant" } });
    const stop = events.find((event) => event.messageStop !== undefined);
    expect(stop?.messageStop?.stopReason).toBe("end_turn");
    const usage = events.at(-1)?.metadata?.usage;
    expect(usage).toMatchObject({ outputTokens: 3 });
    expect(Number.isInteger(events.at(-1)?.metadata?.metrics?.latencyMs)).toBe(true);
    expect(await truth).toMatchObject({
      status: 200,
      isStreamed: true,
      hasUsage: true,
      clientLeft: false,
      completionTokens: 3,
      promptTokens: usage?.inputTokens,
    });
  });

  test("reads parallel tool calls, each in its own block", async () => {
    const tool = (name: string) => {
      const json = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
      return { toolSpec: { name, description: `Tells the ${name}.`, inputSchema: { json } } };
    };
    const { events, error } = await converse({
      say: "Get the weather and the time in Rome.",
      toolConfig: { tools: [tool("weather"), tool("time")], toolChoice: { any: {} } },
    });
    expect(error).toBeUndefined();
    const starts = events.flatMap(({ contentBlockStart }) => contentBlockStart ?? []);
    expect(starts.map(({ start }) => start?.toolUse?.name)).toEqual(["weather", "time"]);
    for (const { contentBlockIndex, start } of starts) {
      expect(start?.toolUse?.toolUseId).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      const input = events
        .filter(
          ({ contentBlockDelta }) => contentBlockDelta?.contentBlockIndex === contentBlockIndex,
        )
        .map(({ contentBlockDelta }) => contentBlockDelta?.delta?.toolUse?.input ?? "");
      expect(JSON.parse(input.join(""))).toMatchObject({ city: expect.any(String) });
    }
    const stop = events.find((event) => event.messageStop !== undefined);
    expect(stop?.messageStop?.stopReason).toBe("tool_use");
  });

  test("reads thoughts and their signature before the text", async () => {
    const { events, error } = await converse({
      inferenceConfig: { maxTokens: 4096 },
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1024 } },
    });
    expect(error).toBeUndefined();
    const deltas = events.flatMap(({ contentBlockDelta }) => contentBlockDelta ?? []);
    const thoughts = deltas.map(({ delta }) => delta?.reasoningContent?.text ?? "").join("");
    expect(thoughts).toStartWith("Step 1");
    const signed = deltas.findIndex(
      ({ delta }) => delta?.reasoningContent?.signature !== undefined,
    );
    const spoken = deltas.findIndex(({ delta }) => delta?.text !== undefined);
    expect(signed).toBeGreaterThan(0);
    expect(spoken).toBe(signed + 1);
    expect(deltas[spoken]?.contentBlockIndex).toBe(1);
    expect(textOf(events)).toBe("1 2 3");
  });

  test.each(["random-splits", "random-splits-2", "random-splits-3", "dribble", "comments"])(
    "reads the same text with %s",
    async (mode) => {
      const { events, error } = await converse({ model: faulty(mode), say: "count: 40" });
      expect(error).toBeUndefined();
      const numbers = Array.from({ length: 40 }, (_, index) => index + 1);
      expect(textOf(events)).toBe(numbers.join(" "));
      expect(events.at(-1)?.metadata?.usage?.outputTokens).toBe(40);
    },
  );

  test.each([
    ["internal-server", "InternalServerException"],
    ["model-stream-error", "ModelStreamErrorException"],
    ["validation", "ValidationException"],
    ["throttling", "ThrottlingException"],
    ["service-unavailable", "ServiceUnavailableException"],
  ])("throws %s of a stream as %s, first or after the first words", async (mode, name) => {
    const first = await converse({ model: faulty(`first-frame-${mode}`) });
    expect(first.events).toEqual([]);
    expect(first.error).toMatchObject({ name });
    const later = await converse({ model: faulty(`mid-stream-${mode}`) });
    expect(textOf(later.events)).toBe("1 2");
    expect(later.error).toMatchObject({ name, message: expect.any(String) });
  });

  test.each([
    ["exception-validation", "ValidationException", 400],
    ["exception-access-denied", "AccessDeniedException", 403],
    ["exception-expired-token", "ExpiredTokenException", 403],
    ["exception-resource-not-found", "ResourceNotFoundException", 404],
    ["exception-model-timeout", "ModelTimeoutException", 408],
    ["exception-model-error", "ModelErrorException", 424],
    ["exception-throttling", "ThrottlingException", 429],
    ["exception-model-not-ready", "ModelNotReadyException", 429],
    ["exception-service-quota", "ServiceQuotaExceededException", 400],
    ["exception-internal-server", "InternalServerException", 500],
    ["exception-service-unavailable", "ServiceUnavailableException", 503],
  ])("knows %s by its name and status", async (mode, name, status) => {
    const { error } = await converse({ model: faulty(mode) });
    expect(error).toMatchObject({ name, $metadata: { httpStatusCode: status } });
  });

  test("gets the model's own status with an error of the model", async () => {
    const { error } = await converse({ model: faulty("exception-model-error-throttled") });
    expect(error).toMatchObject({ originalStatusCode: 429 });
  });

  test.each(["bad-prelude-crc", "bad-message-crc", "truncated-frame", "transport-error-frame"])(
    "fails at %s",
    async (mode) => {
      const { events, error } = await converse({ model: faulty(mode) });
      expect(error).toBeInstanceOf(Error);
      expect(textOf(events)).toBe("1 2");
    },
  );

  test("retries through a burst of throttling", async () => {
    const retrying = clientWith(3);
    const { stream = [] } = await retrying.send(command({ model: faulty("throttled-burst-2") }));
    const events = await Array.fromAsync(stream);
    expect(textOf(events)).toBe("1 2 3");
    retrying.destroy();
  });

  test("may leave in the middle, and the truth has the tokens it got", async () => {
    const truth = nextTruth();
    const leave = new AbortController();
    const { stream = [] } = await client.send(command({ model: faulty("stall-mid") }), {
      abortSignal: leave.signal,
    });
    let text = "";
    const reading = (async () => {
      for await (const event of stream) {
        text += event.contentBlockDelta?.delta?.text ?? "";
        if (text === "1 2") leave.abort();
      }
    })();
    await reading.catch(() => undefined);
    expect(await truth).toMatchObject({
      status: 200,
      clientLeft: true,
      completionTokens: 2,
      hasUsage: false,
    });
  });
});
