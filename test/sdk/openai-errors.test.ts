import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "openai";
import { ManualClock } from "../support/manual-clock.ts";
import { startGateway, chatKinds } from "../support/gateway.ts";
import { startSdkGateway, type SdkGateway } from "./sdk-gateway.ts";

describe.each(chatKinds)("with every alias on kind %s:", (kind) => {
  let sdk: SdkGateway;
  beforeAll(async () => {
    sdk = await startSdkGateway(kind);
  });
  afterAll(async () => {
    await sdk[Symbol.asyncDispose]();
  });

  function clientWith(apiKey: string, options: { maxRetries?: number } = {}): OpenAI {
    return new OpenAI({ baseURL: sdk.baseUrl, apiKey, maxRetries: 0, ...options });
  }

  const hello = { model: "chat-model", messages: [{ role: "user" as const, content: "echo: Hi" }] };

  /** The error that a call throws; fails when it throws none, or one of another class. */
  async function errorOf<Thrown extends APIError>(
    promise: Promise<unknown>,
    expected: new (...args: never[]) => Thrown,
  ): Promise<Thrown> {
    const error: unknown = await promise.then(
      () => "no error",
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(expected);
    if (error instanceof expected) return error;
    throw new Error("not the expected error");
  }

  describe("AuthenticationError 401 invalid_api_key", () => {
    test.each(["revoked", "otherEnvironment"] as const)("of a key that is %s", async (name) => {
      const promise = clientWith(sdk.keys[name]).models.list();
      const error = await errorOf(promise, AuthenticationError);
      expect(error).toMatchObject({
        status: 401,
        code: "invalid_api_key",
        type: "invalid_request_error",
        param: null,
      });
      expect(error.requestID).toMatch(/^req_[0-9a-f]{32}$/);
      expect(error.message).toContain("Incorrect API key provided");
    });

    test("of a key that is unknown, malformed or another's", async () => {
      const { valid } = sdk.keys;
      const other = `${valid.slice(0, -1)}${valid.endsWith("a") ? "b" : "a"}`;
      for (const key of ["wrong", "sk-0123456789", other, valid.toUpperCase()]) {
        const promise = clientWith(key).chat.completions.create(hello);
        const error = await errorOf(promise, AuthenticationError);
        expect(error.code).toBe("invalid_api_key");
      }
    });

    test("of a request of 20 MB, with its length and in chunks", async () => {
      const text = "x".repeat(20_000_000);
      const messages = [{ role: "user" as const, content: text }];
      const promise = clientWith("wrong").chat.completions.create({ ...hello, messages });
      expect((await errorOf(promise, AuthenticationError)).status).toBe(401);
      const body = new Blob([text]).stream();
      const answer = await fetch(`${sdk.baseUrl}/chat/completions`, { method: "POST", body });
      expect(answer.status).toBe(401);
    });

    test("of a request without a key", async () => {
      const client = new OpenAI({
        baseURL: sdk.baseUrl,
        apiKey: "unused",
        maxRetries: 0,
        defaultHeaders: { authorization: null },
      });
      const error = await errorOf(client.models.list(), AuthenticationError);
      expect(error.code).toBe("invalid_api_key");
    });
  });

  describe("BadRequestError 400", () => {
    const named = (name: string) => ({ type: "function", function: { name } });
    const tool = named("get_weather");
    const refuse = (body: object) =>
      errorOf(
        clientWith(sdk.keys.valid).chat.completions.create({ ...hello, ...body }),
        BadRequestError,
      );

    test.each(["no-such-model", "embedding-model", "CHAT-MODEL"])(
      "invalid_model of the model %s",
      async (model) => {
        const error = await refuse({ model });
        expect(error).toMatchObject({
          status: 400,
          code: "invalid_model",
          type: "invalid_request_error",
          param: "model",
        });
        expect(error.message).toContain(model);
      },
    );

    test("invalid_model of a chat model for embeddings", async () => {
      const client = clientWith(sdk.keys.valid);
      const promise = client.embeddings.create({ model: "chat-model", input: "a" });
      expect((await errorOf(promise, BadRequestError)).code).toBe("invalid_model");
    });

    test.each([false, true])(
      "context_length_exceeded when the upstream says so, streamed: %p",
      async (stream) => {
        const content = "word ".repeat(100);
        const messages = [{ role: "user", content }];
        const error = await refuse({ model: "small-model", messages, stream });
        expect(error).toMatchObject({ code: "context_length_exceeded", param: "messages" });
        expect(error.message).toContain("This model's maximum context length is 32 tokens.");
      },
    );

    test("context_length_exceeded before the upstream is asked", async () => {
      const messages = [{ role: "user" as const, content: "x".repeat(999_000) }];
      await using gateway = await startGateway({
        sections: {
          models: `
  tiny-model: { kind: chat, context_window: 64, targets: [{ upstream: simulator, model: any }] }`,
        },
      });
      const client = new OpenAI({
        baseURL: `${gateway.url}/v1`,
        apiKey: gateway.key,
        maxRetries: 0,
      });
      const promise = client.chat.completions.create({
        ...hello,
        messages,
        model: "tiny-model",
      } as never);
      const error = await errorOf(promise, BadRequestError);
      expect(error).toMatchObject({ code: "context_length_exceeded", param: "messages" });
      expect(error.message).toContain("This model's maximum context length is 64 tokens.");
      expect(gateway.simulator.truth.entries).toHaveLength(0);
    });

    test.each([
      [{ temperature: 3 }, "temperature", "decimal_above_max_value"],
      [{ top_p: -1 }, "top_p", "decimal_below_min_value"],
      [{ n: 0 }, "n", "integer_below_min_value"],
      [{ n: 129 }, "n", "integer_above_max_value"],
      [{ max_tokens: "many" }, "max_tokens", "invalid_type"],
      [{ messages: [] }, "messages", "empty_array"],
      [{ messages: undefined }, "messages", "missing_required_parameter"],
      [{ messages: [{ role: "robot", content: "" }] }, "messages[0].role", "invalid_value"],
      [{ messages: [{ role: "user", content: {} }] }, "messages[0].content", "invalid_type"],
      [{ stop: ["1", "2", "3", "4", "5"] }, "stop", "array_above_max_length"],
      [{ tools: [{ type: "function" }] }, "tools[0].function", "missing_required_parameter"],
      [{ response_format: { type: "xml" } }, "response_format.type", "invalid_value"],
      [{ stream_options: { include_usage: true } }, "stream_options", null],
      [{ top_logprobs: 2 }, "top_logprobs", null],
      [{ max_tokens: 64_001 }, "max_tokens", "invalid_value"],
      [{ tools: [tool], tool_choice: named("none") }, "tool_choice", "invalid_value"],
    ])("of the body with %j names %s and says %p", async (body, param, code) => {
      expect(await refuse(body)).toMatchObject({ type: "invalid_request_error", param, code });
    });

    test("of a body without a model", async () => {
      const error = await refuse({ model: undefined });
      expect(error.message).toContain("you must provide a model parameter");
    });
  });

  describe("RateLimitError 429 rate_limit_exceeded", () => {
    function expectHeaders({ headers }: RateLimitError, limits: Record<string, string>): void {
      const waitMs = Number(headers.get("retry-after-ms"));
      expect(waitMs).toBeGreaterThan(0);
      // The longest wait is 61 seconds, and a tenth more to spread those who were refused together.
      expect(waitMs).toBeLessThanOrEqual(67_100);
      expect(headers.get("retry-after")).toBe(String(Math.ceil(waitMs / 1000)));
      expect(headers.get("x-should-retry")).toBe("true");
      expect(Object.fromEntries(headers)).toMatchObject(limits);
      for (const unit of ["requests", "tokens"]) {
        expect(headers.get(`x-ratelimit-remaining-${unit}`)).toMatch(/^\d+$/);
        expect(headers.get(`x-ratelimit-reset-${unit}`)).toMatch(/^(\d+m)?\d+(\.\d+)?m?s$/);
      }
    }

    test("on requests", async () => {
      const client = clientWith(sdk.keys.fewRequests);
      await client.chat.completions.create(hello);
      await client.chat.completions.create(hello);
      const error = await errorOf(client.chat.completions.create(hello), RateLimitError);
      expect(error).toMatchObject({
        status: 429,
        code: "rate_limit_exceeded",
        type: "requests",
        param: null,
      });
      expect(error.message).toContain("requests per min (RPM): Limit 2, Used 2, Requested 1.");
      expectHeaders(error, {
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "0",
      });
    });

    test("on tokens", async () => {
      const client = clientWith(sdk.keys.fewTokens);
      const count = { ...hello, messages: [{ role: "user" as const, content: "count: 1500" }] };
      await client.chat.completions.create({ ...count, max_tokens: 1500 });
      const promise = client.chat.completions.create({ ...count, max_tokens: 1500, stream: true });
      const error = await errorOf(promise, RateLimitError);
      expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded", type: "tokens" });
      expect(error.message).toContain("tokens per min (TPM): Limit 2000, Used ");
      expectHeaders(error, { "x-ratelimit-limit-tokens": "2000" });
    });

    test("of a request that can never fit tells the client not to try again", async () => {
      const client = clientWith(sdk.keys.fewTokens, { maxRetries: 5 });
      const promise = client.chat.completions.create({ ...hello, max_tokens: 2001 });
      const error = await errorOf(promise, RateLimitError);
      expect(error).toMatchObject({ code: "rate_limit_exceeded", type: "tokens" });
      expect(error.message).toContain("Request too large");
      expect(error.headers.get("x-should-retry")).toBe("false");
    });

    test("of the pilot plan comes with its sixty-first request", async () => {
      const { text } = await sdk.gateway.createKey({ plan: "pilot" });
      const client = clientWith(text);
      const request = { ...hello, max_tokens: 1 };
      await Promise.all(Array.from({ length: 60 }, () => client.chat.completions.create(request)));
      const error = await errorOf(client.chat.completions.create(request), RateLimitError);
      expect(error).toMatchObject({ code: "rate_limit_exceeded", type: "requests" });
      expectHeaders(error, {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-limit-tokens": "100000",
      });
    });

    test("is waited out by a client that retries, as long as it is told and no longer", async () => {
      const clock = new ManualClock();
      await using gateway = await startGateway({
        overrides: { clock },
        key: { plan: "enterprise", limits: { requestsPerMinute: 1, tokensPerMinute: 1_000_000 } },
      });
      const statuses: number[] = [];
      const client = new OpenAI({
        baseURL: `${gateway.url}/v1`,
        apiKey: gateway.key,
        fetch: async (url, init) => {
          const response = await fetch(url, init);
          statuses.push(response.status);
          clock.advance(Number(response.headers.get("retry-after-ms") ?? 0));
          return response;
        },
      });
      await client.chat.completions.create(hello);
      clock.advance(60_700);
      const answer = await client.chat.completions.create(hello);
      expect(answer.choices[0]?.message.content).toBe("Hi");
      expect(statuses).toEqual([200, 429, 200]);
    });
  });

  describe("InternalServerError 503 model_unavailable", () => {
    test.each([
      ["throttled-model", "the provider is limiting requests"],
      ["overloaded-model", "the provider is overloaded"],
      ["failing-model", "the provider answered with an error"],
      ["unreachable-model", "the provider could not be reached"],
    ])("of %s: %s", async (model, reason) => {
      for (const stream of [false, true]) {
        const promise = clientWith(sdk.keys.valid).chat.completions.create({
          ...hello,
          model,
          stream,
        });
        const error = await errorOf(promise, InternalServerError);
        expect(error).toMatchObject({
          status: 503,
          code: "model_unavailable",
          type: "server_error",
          param: null,
        });
        expect(error.message).toContain(reason);
        expect(error.headers.get("retry-after")).toBe("2");
        expect(error.headers.get("x-should-retry")).toBe("true");
        expect(error.requestID).toMatch(/^req_/);
      }
    });

    test("is retried by the client, after the provider's own wait", async () => {
      const counts: (string | null)[] = [];
      const client = new OpenAI({
        baseURL: sdk.baseUrl,
        apiKey: sdk.keys.valid,
        fetch: (url, init) => {
          counts.push(new Headers(init?.headers).get("x-stainless-retry-count"));
          return fetch(url, init);
        },
      });
      sdk.simulator.setFaultPlan([{ mode: "throttle-429", argument: 20, times: 2 }]);
      const answer = await client.chat.completions.create(hello);
      expect(answer.choices[0]?.message.content).toBe("Hi");
      expect(counts).toEqual(["0", "1", "2"]);
    });
  });

  describe("HTTP's own refusals", () => {
    const client = () => clientWith(sdk.keys.valid);

    test("404 of a path that is not there", async () => {
      const promise = client().completions.create({ model: "chat-model", prompt: "Hi" });
      expect(await errorOf(promise, NotFoundError)).toMatchObject({
        status: 404,
        code: "unknown_url",
        type: "invalid_request_error",
      });
    });

    test("404 of a model that is not there, whatever its name", async () => {
      for (const name of ["none", "some/model:8b"]) {
        const error = await errorOf(client().models.retrieve(name), NotFoundError);
        expect(error).toMatchObject({ status: 404, code: "model_not_found", param: "model" });
        expect(error.message).toContain(name);
      }
    });

    test("405 of a method that is not taken", async () => {
      const error = await errorOf(client().models.delete("chat-model"), APIError);
      expect(error).toMatchObject({ status: 405, code: null, type: "invalid_request_error" });
    });

    test("413 of a body that is too large", async () => {
      const messages = [{ role: "user" as const, content: "x".repeat(1_100_000) }];
      const promise = client().chat.completions.create({ ...hello, messages });
      expect(await errorOf(promise, APIError)).toMatchObject({
        status: 413,
        code: "request_too_large",
        type: "invalid_request_error",
      });
    });

    test("415 of another content type", async () => {
      const promise = client().chat.completions.create(hello, {
        headers: { "content-type": "text/plain" },
      });
      expect(await errorOf(promise, APIError)).toMatchObject({
        status: 415,
        code: "unsupported_content_type",
        type: "invalid_request_error",
      });
    });
  });

  describe("an error in the middle of a stream", () => {
    const request = { ...hello, model: "breaking-model", stream: true } as const;

    test("is thrown after the text that came before it", async () => {
      const stream = await clientWith(sdk.keys.valid).chat.completions.create(request);
      let text = "";
      const read = async (): Promise<void> => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      };
      const error = await errorOf(read(), APIError);
      expect(text).toBe("Hello");
      expect(error).toMatchObject({ code: "model_unavailable", type: "server_error", param: null });
    });

    test("is thrown by the client's helper", async () => {
      const stream = clientWith(sdk.keys.valid).chat.completions.stream(request);
      const error = await errorOf(stream.finalChatCompletion(), APIError);
      expect(error.code).toBe("model_unavailable");
    });

    test("is not followed by [DONE]", async () => {
      const response = await sdk.gateway.post("/v1/chat/completions", request);
      const text = await response.text();
      expect(text).toContain('data: {"error":');
      expect(text).not.toContain("[DONE]");
    });
  });

  test("a call that the caller aborts ends as the caller's abort", async () => {
    const controller = new AbortController();
    const promise = clientWith(sdk.keys.valid).chat.completions.create(
      { ...hello, model: "stalling-model" },
      { signal: controller.signal },
    );
    const seen = errorOf(promise, APIUserAbortError);
    while (sdk.simulator.openCalls === 0) await Bun.sleep(5);
    controller.abort();
    await seen;
    while (sdk.simulator.openCalls > 0) await Bun.sleep(5);
  });
});
