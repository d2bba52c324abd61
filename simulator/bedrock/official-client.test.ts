import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  BedrockRuntimeClient,
  BedrockRuntimeServiceException,
  ConverseCommand,
  type ConverseCommandInput,
  CountTokensCommand,
  InvokeModelCommand,
} from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { type Simulator, startSimulator } from "../simulator.ts";
import { demoApiKey, demoCredentials, type SimulatedCredential } from "./credentials.ts";

let simulator: Simulator;
let savedBearer: string | undefined;
beforeAll(() => {
  // A key in the environment would replace the credentials of this test.
  savedBearer = process.env["AWS_BEARER_TOKEN_BEDROCK"];
  delete process.env["AWS_BEARER_TOKEN_BEDROCK"];
  simulator = startSimulator();
});
afterAll(async () => {
  if (savedBearer !== undefined) process.env["AWS_BEARER_TOKEN_BEDROCK"] = savedBearer;
  await simulator[Symbol.asyncDispose]();
});

function clientWith(credentials: SimulatedCredential): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    endpoint: simulator.origin,
    region: "eu-central-1",
    credentials,
    authSchemePreference: ["sigv4"],
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  });
}

const say = (text: string): Pick<ConverseCommandInput, "messages"> => ({
  messages: [{ role: "user", content: [{ text }] }],
});

async function converse(
  input: Partial<ConverseCommandInput>,
  credentials: SimulatedCredential = demoCredentials,
) {
  const client = clientWith(credentials);
  try {
    return await client.send(new ConverseCommand({ modelId: "simulated-model", ...input }));
  } finally {
    client.destroy();
  }
}

async function failureOf(promise: Promise<unknown>): Promise<BedrockRuntimeServiceException> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof BedrockRuntimeServiceException) return error;
  throw new Error(`expected an exception of the service, got ${String(error)}`);
}

describe("the official client", () => {
  test("gets the answer to a conversation", async () => {
    const answer = await converse({
      ...say("echo: one two"),
      system: [{ text: "Be brief." }],
      serviceTier: { type: "flex" },
    });
    expect(answer.output?.message).toEqual({ role: "assistant", content: [{ text: "one two" }] });
    expect(answer.stopReason).toBe("end_turn");
    expect(answer.usage?.outputTokens).toBe(2);
    expect(answer.serviceTier).toEqual({ type: "flex" });
    expect(Number.isInteger(answer.metrics?.latencyMs)).toBe(true);
    const entry = simulator.truth.entries.findLast(({ id }) => id === answer.$metadata.requestId);
    expect(entry).toMatchObject({ kind: "chat", model: "simulated-model", completionTokens: 2 });
  });

  test.each([
    "us.anthropic.claude-sonnet-4-6",
    "mistral.mixtral-8x7b-instruct-v0:1",
    "arn:aws:bedrock:eu-central-1:123456789012:provisioned-model/abcdefghijkl",
    "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0",
  ])("names models by %s", async (modelId) => {
    const answer = await converse({ modelId, ...say("echo: here") });
    expect(answer.output?.message?.content).toEqual([{ text: "here" }]);
    expect(simulator.truth.entries.at(-1)?.model).toBe(modelId);
  });

  test("gets tool calls as objects, with ids that it can send back", async () => {
    const tools = [
      {
        toolSpec: {
          name: "get_weather",
          inputSchema: { json: { type: "object", properties: { city: { type: "string" } } } },
        },
      },
    ];
    const toolConfig = { tools, toolChoice: { any: {} } };
    const first = await converse({ ...say("Weather in Paris?"), toolConfig });
    expect(first.stopReason).toBe("tool_use");
    const call = first.output?.message?.content?.find((block) => block.toolUse !== undefined);
    expect(call?.toolUse?.toolUseId).toMatch(/^tooluse_[a-zA-Z0-9_-]+$/);
    expect(typeof call?.toolUse?.input).toBe("object");
    const second = await converse({
      toolConfig: { tools },
      messages: [
        { role: "user", content: [{ text: "Weather in Paris?" }] },
        { role: "assistant", content: first.output?.message?.content },
        {
          role: "user",
          content: [{ toolResult: { toolUseId: call?.toolUse?.toolUseId, content: [] } }],
        },
      ],
    });
    expect(second.stopReason).toBe("end_turn");
  });

  test("embeds a text through Titan", async () => {
    const client = clientWith(demoCredentials);
    const answer = await client.send(
      new InvokeModelCommand({
        modelId: "amazon.titan-embed-text-v2:0",
        contentType: "application/json",
        body: JSON.stringify({ inputText: "hello world", dimensions: 256 }),
      }),
    );
    const body = JSON.parse(answer.body.transformToString()) as {
      embedding: number[];
      inputTextTokenCount: number;
    };
    expect(body.embedding).toHaveLength(256);
    expect(Math.hypot(...body.embedding)).toBeCloseTo(1, 5);
    expect(body.inputTextTokenCount).toBe(2);
    client.destroy();
  });

  test("counts tokens as the answer's usage does", async () => {
    const client = clientWith(demoCredentials);
    const { messages } = say("How many tokens has this?");
    const counted = await client.send(
      new CountTokensCommand({
        modelId: "anthropic.claude-sonnet-4-20250514-v1:0",
        input: { converse: { messages } },
      }),
    );
    const answer = await converse({ messages });
    expect(counted.inputTokens).toBe(answer.usage?.inputTokens);
    expect(simulator.truth.entries.some(({ kind }) => kind === "count-tokens")).toBe(true);
    client.destroy();
  });

  test("may call with a bearer key", async () => {
    const client = new BedrockRuntimeClient({
      endpoint: simulator.origin,
      region: "us-east-1",
      token: { token: demoApiKey },
      authSchemePreference: ["httpBearerAuth"],
      requestHandler: new NodeHttpHandler(),
      maxAttempts: 1,
    });
    const command = new ConverseCommand({ modelId: "simulated-model", ...say("echo: in") });
    expect((await client.send(command)).output?.message?.content).toEqual([{ text: "in" }]);
    client.destroy();
  });

  test("is refused with a wrong secret, an unknown key, and an expired session", async () => {
    const wrong = { ...demoCredentials, secretAccessKey: `${demoCredentials.secretAccessKey}r` };
    const forged = await failureOf(converse(say("hi"), wrong));
    expect(forged.name).toBe("InvalidSignatureException");
    expect(forged.$metadata.httpStatusCode).toBe(403);
    const unknown = { ...demoCredentials, accessKeyId: "SOMEBODYELSE" };
    expect((await failureOf(converse(say("hi"), unknown))).name).toBe(
      "UnrecognizedClientException",
    );
    const session = { accessKeyId: "SESSION", secretAccessKey: "secret", sessionToken: "token" };
    simulator.bedrock.issue(session);
    expect((await converse(say("echo: in"), session)).stopReason).toBe("end_turn");
    const other = { ...session, sessionToken: "another" };
    expect((await failureOf(converse(say("hi"), other))).name).toBe("UnrecognizedClientException");
    simulator.bedrock.expire("SESSION");
    expect((await failureOf(converse(say("hi"), session))).name).toBe("ExpiredTokenException");
    simulator.bedrock.issue(session);
    expect((await converse(say("echo: in"), session)).stopReason).toBe("end_turn");
  });

  test.each([
    ["no-such-model", "ValidationException", 400],
    ["anthropic.claude-v2:1", "ResourceNotFoundException", 404],
    ["fault-throttle-429", "ThrottlingException", 429],
    ["fault-exception-model-not-ready", "ModelNotReadyException", 429],
    ["fault-exception-model-error", "ModelErrorException", 424],
    ["fault-exception-model-timeout", "ModelTimeoutException", 408],
    ["fault-error-500", "InternalServerException", 500],
    ["fault-overloaded-503", "ServiceUnavailableException", 503],
    ["fault-exception-service-quota", "ServiceQuotaExceededException", 400],
    ["fault-exception-access-denied", "AccessDeniedException", 403],
  ])("knows what %s is refused with", async (modelId, name, status) => {
    const error = await failureOf(converse({ modelId, ...say("hi") }));
    expect(error.name).toBe(name);
    expect(error.message).not.toBe("");
    expect(error.$metadata.httpStatusCode).toBe(status);
    const entry = simulator.truth.entries.findLast(({ id }) => id === error.$metadata.requestId);
    expect(entry).toMatchObject({ model: modelId, status });
  });
});
