import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { type Simulator, startSimulator } from "../simulator.ts";
import { BedrockError } from "./errors.ts";
import {
  CredentialBook,
  demoApiKey,
  demoCredentials,
  verifySignature,
  type WireRequest,
} from "./credentials.ts";

const arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/a1b2c3d4e5f6";

interface SentRequest {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array<ArrayBuffer>;
}

let simulator: Simulator;
let signed: SentRequest;
beforeAll(async () => {
  simulator = startSimulator();
  signed = await signedByOfficialClient(simulator.origin);
});
afterAll(() => simulator[Symbol.asyncDispose]());

/** A request as signed by the official client. */
async function signedByOfficialClient(
  endpoint: string,
  query?: Readonly<Record<string, string>>,
): Promise<SentRequest> {
  const { promise, resolve } = Promise.withResolvers<SentRequest>();
  const client = new BedrockRuntimeClient({
    endpoint,
    region: "eu-west-1",
    credentials: demoCredentials,
    authSchemePreference: ["sigv4"],
    maxAttempts: 1,
    requestHandler: {
      handle(request: SentRequest) {
        resolve(request);
        return Promise.reject(new Error("not sent"));
      },
    },
  });
  client.middlewareStack.add(
    (next) => (args) => {
      if (query !== undefined) Object.assign(args.request as object, { query });
      return next(args);
    },
    { step: "build" },
  );
  const messages = [{ role: "user" as const, content: [{ text: "echo: signed" }] }];
  await client.send(new ConverseCommand({ modelId: arn, messages })).catch(() => undefined);
  client.destroy();
  return promise;
}

function wire(change: Partial<WireRequest> = {}): WireRequest {
  return {
    method: "POST",
    path: signed.path,
    query: "",
    headers: new Headers(signed.headers),
    body: signed.body,
    ...change,
  };
}

function withHeader(name: string, value: string | undefined): WireRequest {
  const headers = new Headers(signed.headers);
  if (value === undefined) headers.delete(name);
  else headers.set(name, value);
  return wire({ headers });
}

function signedAt(): number {
  const [, date, time] = /^(\d{8})T(\d{6})Z$/.exec(signed.headers["x-amz-date"] ?? "") ?? [];
  const days = date?.replace(/(\d{4})(\d\d)(\d\d)/, "$1-$2-$3");
  return Date.parse(`${days}T${time?.replace(/(\d\d)(\d\d)(\d\d)/, "$1:$2:$3")}Z`);
}

function refusal(request: WireRequest, more: { now?: number; region?: string } = {}) {
  const { now = signedAt(), region } = more;
  try {
    verifySignature(request, { credentials: new CredentialBook({}), region, now });
    return undefined;
  } catch (error) {
    if (error instanceof BedrockError) return error;
    throw error;
  }
}

const minuteMs = 60_000;

describe("a signature of the official client", () => {
  test("is valid", () => {
    expect(signed.path).toBe(`/model/${encodeURIComponent(arn)}/converse`);
    expect(refusal(wire())).toBeUndefined();
    expect(refusal(wire(), { region: "eu-west-1" })).toBeUndefined();
  });

  test("covers the query, in any order of its names", async () => {
    const { headers } = await signedByOfficialClient(simulator.origin, { "a-b": "2", a: "1" });
    for (const query of ["a=1&a-b=2", "a-b=2&a=1"]) {
      expect(refusal(wire({ query, headers: new Headers(headers) }))).toBeUndefined();
    }
    const other = wire({ query: "a=2&a-b=1", headers: new Headers(headers) });
    expect(refusal(other)?.name).toBe("InvalidSignatureException");
  });

  test("is refused for another spelling of the same path", () => {
    const path = signed.path.replaceAll("%3A", ":");
    expect(refusal(wire({ path }))?.name).toBe("InvalidSignatureException");
  });

  test.each([5, 4, -4, -5])("is valid %d minutes after its date", (minutes) => {
    expect(refusal(wire(), { now: signedAt() + minutes * minuteMs })).toBeUndefined();
  });

  test.each([
    [5 * minuteMs + 1000, /^Signature expired: /],
    [-5 * minuteMs - 1000, /^Signature not yet current: /],
  ])("is refused %d ms after it was made", (ageMs, message) => {
    const error = refusal(wire(), { now: signedAt() + ageMs });
    expect(error?.name).toBe("InvalidSignatureException");
    expect(error?.message).toMatch(message);
  });

  test("is refused for another region", () => {
    const error = refusal(wire(), { region: "us-east-1" });
    expect(error?.name).toBe("InvalidSignatureException");
    expect(error?.message).toMatch(/^Credential should be scoped to us-east-1/);
  });

  test("is refused for every flipped bit of the body", () => {
    for (let index = 0; index < signed.body.length; index++) {
      const changed = new Uint8Array(signed.body);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(refusal(wire({ body: changed }))?.name).toBe("InvalidSignatureException");
    }
  });

  test("is refused for another path, query, method, host or date", () => {
    const others = [
      wire({ path: signed.path.replace("converse", "converse-stream") }),
      wire({ path: signed.path.replace("%2F", "/") }),
      wire({ query: "x=1" }),
      wire({ method: "PUT" }),
      withHeader("host", "elsewhere:1"),
      withHeader("x-amz-date", signed.headers["x-amz-date"]?.replace(/\dZ$/, "xZ")),
      withHeader("x-amz-content-sha256", "0".repeat(64)),
    ];
    expect(others.map((other) => refusal(other)?.status)).toEqual(others.map(() => 403));
  });

  test("must cover all headers of the provider", () => {
    const error = refusal(withHeader("x-amz-security-token", "smuggled"));
    expect(error?.name).toBe("UnrecognizedClientException");
    expect(refusal(withHeader("x-amz-target", "elsewhere"))?.message).toBe(
      "'x-amz-target' must be a 'SignedHeader' in the AWS Authorization.",
    );
    expect(refusal(withHeader("accept", "anything/at-all"))).toBeUndefined();
  });
});

describe("a request with an incomplete signature", () => {
  test.each([
    [undefined, "MissingAuthenticationTokenException"],
    ["", "IncompleteSignatureException"],
    ["Basic dXNlcjpwYXNz", "IncompleteSignatureException"],
    ["AWS4-HMAC-SHA256", "IncompleteSignatureException"],
    [
      "AWS4-HMAC-SHA256 Credential=A/20260101/r/bedrock/aws4_request",
      "IncompleteSignatureException",
    ],
    [
      "AWS4-HMAC-SHA256 Credential=A/r/bedrock, SignedHeaders=host, Signature=0",
      "IncompleteSignatureException",
    ],
  ])("is refused: %s", (authorization, name) => {
    expect(String(refusal(withHeader("authorization", authorization))?.name)).toBe(name);
  });

  test("is refused without a date", () => {
    expect(refusal(withHeader("x-amz-date", undefined))?.name).toBe("IncompleteSignatureException");
  });

  test.each([
    ["bedrock/aws4_request", "bedrock-runtime/aws4_request", /should be scoped/],
    ["aws4_request", "aws3_request", /should be scoped/],
  ])("is refused when scoped %s becomes %s", (scope, other, message) => {
    const authorization = signed.headers["authorization"]?.replace(scope, other);
    expect(refusal(withHeader("authorization", authorization))?.message).toMatch(message);
  });
});

describe("a bearer key", () => {
  test("is valid until it expires", () => {
    const credentials = new CredentialBook({ apiKeys: ["one", "two"] });
    credentials.expire("two");
    const verify = (key: string) => () => {
      const request = withHeader("authorization", `Bearer ${key}`);
      verifySignature(request, { credentials, region: undefined, now: 0 });
    };
    expect(verify("one")).not.toThrow();
    expect(verify("two")).toThrow("Bearer Token has expired");
    expect(verify("three")).toThrow("Please make sure your API Key is valid");
    expect(verify(demoApiKey)).toThrow("Please make sure your API Key is valid");
    credentials.issueApiKey("two");
    expect(verify("two")).not.toThrow();
  });
});

describe("over a real connection", () => {
  const send = (
    path: string,
    headers: Record<string, string>,
    body: Uint8Array<ArrayBuffer>,
  ): Promise<Response> => fetch(simulator.origin + path, { method: "POST", headers, body });
  const nothing = new Uint8Array(0);

  test("a replayed request is accepted, and refused with one changed byte", async () => {
    const { path, headers, body } = signed;
    const good = await send(path, headers, body);
    expect(await good.json()).toMatchObject({
      output: { message: { content: [{ text: "signed" }] } },
    });
    const flipped = new Uint8Array(body);
    flipped[40] = (flipped[40] ?? 0) ^ 1;
    const forged = [
      await send(path, headers, flipped),
      await send(path.replace("a1b2", "a1b3"), headers, body),
      await send(path, { ...headers, "x-amz-date": "20200101T000000Z" }, body),
    ];
    for (const refused of forged) {
      expect(refused.status).toBe(403);
      expect(refused.headers.get("x-amzn-errortype")).toBe(
        "InvalidSignatureException:http://internal.amazon.com/coral/com.amazon.bedrock/",
      );
    }
    const entry = simulator.truth.entries.at(-1);
    expect(entry).toMatchObject({ model: arn, status: 403, completionTokens: 0 });
  });

  test("paths other than the known operations are unknown, signed or not", async () => {
    const paths = [
      "/model/a/converse/",
      "/model/a/b/converse",
      "/model/a/talk",
      "/model//converse",
      "/model/%/converse",
      `/model/${arn}/converse`,
    ];
    for (const path of paths) {
      const answer = await send(path, {}, nothing);
      expect(answer.status).toBe(404);
      expect(answer.headers.get("x-amzn-errortype")).toStartWith("UnknownOperationException:");
    }
    expect((await fetch(`${simulator.origin}/model/a/converse`)).status).toBe(404);
    expect((await send("/model/a/converse", {}, nothing)).status).toBe(403);
  });
});
