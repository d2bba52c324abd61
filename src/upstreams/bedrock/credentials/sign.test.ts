import { describe, expect, test } from "bun:test";
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
} from "@aws-sdk/client-bedrock-runtime";
import fc from "fast-check";
import { Secret } from "../../../domain/keys/secret.ts";
import type { UpstreamRequest } from "../../adapter.ts";
import { type AwsCredentials, readSignature, RequestSigner } from "./sign.ts";
import { encodePathSegment } from "../endpoint.ts";

interface Captured {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

interface Case {
  readonly name: string;
  readonly region?: string;
  readonly endpoint?: string;
  readonly token?: string;
  readonly command: SdkCommand;
}

type SdkCommand = ConverseCommand | ConverseStreamCommand | InvokeModelCommand | CountTokensCommand;

const accessKeyId = "AKIDEXAMPLE";
const secretAccessKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/** The request as the official client signs it, taken from it before it is sent. */
async function capture({ region = "us-east-1", endpoint, token, command }: Case) {
  let captured: Captured | undefined;
  const client = new BedrockRuntimeClient({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    credentials: {
      accessKeyId,
      secretAccessKey,
      ...(token === undefined ? {} : { sessionToken: token }),
    },
    authSchemePreference: ["aws.auth#sigv4"],
    maxAttempts: 1,
    requestHandler: {
      handle: (request: Captured) => {
        captured = request;
        return Promise.reject(new Error("captured"));
      },
    },
  });
  // It would sign its own headers too, and one that proxies rewrite.
  const middleware =
    <Args, Output>(next: (args: Args) => Output) =>
    (args: Args): Output => {
      const { request } = args as { request: Captured };
      for (const name of Object.keys(request.headers)) {
        if (name !== "content-type" && name !== "host") delete request.headers[name];
      }
      return next(args);
    };
  client.middlewareStack.addRelativeTo(middleware, {
    relation: "before",
    toMiddleware: "httpSigningMiddleware",
  });
  await client.send(command as ConverseCommand).catch(() => undefined);
  client.destroy();
  if (captured === undefined) throw new Error("the client sent nothing");
  return captured;
}

function credentialsOf(token?: string): AwsCredentials {
  return {
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: token === undefined ? undefined : new Secret(token),
    expiresAtMs: undefined,
  };
}

/** The official client's request, without the headers of its signer. */
function unsigned(captured: Captured): UpstreamRequest {
  const port = captured.port === undefined ? "" : `:${captured.port}`;
  return {
    url: `${captured.protocol}//${captured.hostname}${port}${captured.path}`,
    method: "POST",
    headers: { "content-type": captured.headers["content-type"] ?? "" },
    body: captured.body ?? "",
  };
}

const say = (text: string) => ({ messages: [{ role: "user" as const, content: [{ text }] }] });
const converse = (modelId: string, text = "Hi") =>
  new ConverseCommand({ modelId, ...say(text), inferenceConfig: { maxTokens: 10 } });
const stream = (modelId: string, text = "Hi") =>
  new ConverseStreamCommand({ modelId, ...say(text) });
const invoke = (modelId: string, body: string | Uint8Array) =>
  new InvokeModelCommand({ modelId, body, contentType: "application/json" });
const arn = (rest: string) => `arn:aws:bedrock:us-east-1:123456789012:${rest}`;

const haiku = "anthropic.claude-3-haiku-20240307-v1:0";
const titan = "amazon.titan-embed-text-v2:0";

const cases: readonly Case[] = [
  { name: "a foundation model", command: converse(haiku) },
  { name: "a profile", command: converse("us.anthropic.claude-sonnet-4-6") },
  { name: "a global profile", command: converse("global.anthropic.claude-haiku-4-5-v1:0") },
  { name: "provisioned throughput", command: converse(arn("provisioned-model/abcdef012345")) },
  { name: "a profile's ARN", command: converse(arn(`inference-profile/us.${haiku}`)) },
  { name: "an application's", command: converse(arn("application-inference-profile/x1")) },
  { name: "a custom model", command: stream(arn(`custom-model/${titan}/abc123`)) },
  {
    name: "a GovCloud ARN",
    region: "us-gov-west-1",
    command: converse(`arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/${haiku}`),
  },
  { name: "China", region: "cn-northwest-1", command: converse(haiku) },
  { name: "another region", region: "ap-southeast-2", command: stream(haiku) },
  { name: "a session token", token: "IQoJb3JpZ2luX2VjE+/==", command: converse(haiku) },
  { name: "a long session token", token: "aB+/=".repeat(300), command: stream(haiku) },
  { name: "a stream", command: stream(haiku) },
  { name: "unicode", command: converse(haiku, "Grüße, 世界 👋🏽 \u0000\u2028") },
  { name: "a lone surrogate", command: converse(haiku, "\ud83d") },
  { name: "quotes and line ends", command: stream(haiku, "\"'\\\r\n\t") },
  { name: "64 KiB", command: converse(haiku, "é".repeat(32 * 1024)) },
  { name: "1 MiB", command: converse(haiku, "x".repeat(1024 * 1024)) },
  { name: "1 MiB of bytes", command: invoke(titan, Buffer.alloc(1024 * 1024, 0xa5)) },
  { name: "an embedding", command: invoke(titan, '{"inputText":"Grüße","dimensions":256}') },
  { name: "an empty body", command: invoke(titan, "") },
  {
    name: "counting tokens",
    command: new CountTokensCommand({ modelId: haiku, input: { converse: say("Hi") } }),
  },
  { name: "a port", endpoint: "http://127.0.0.1:8123", command: converse(haiku) },
  { name: "a usual port", endpoint: "https://proxy.example:443", command: converse(haiku) },
  { name: "an IPv6 host", endpoint: "http://[::1]:8123", command: converse(arn("x/y")) },
  { name: "a path before", endpoint: "https://h.example/a:b/c", command: stream(arn("x/y")) },
];

test.each(cases.map((each) => [each.name, each] as const))(
  "the signature for %s equals the official client's",
  async (_, each) => {
    const captured = await capture(each);
    const signer = new RequestSigner(each.region ?? "us-east-1");
    const signed = signer.sign(
      unsigned(captured),
      credentialsOf(each.token),
      readSignature(captured.headers)?.signedAtMs ?? 0,
    );
    expect(signed.headers["authorization"]).toBe(captured.headers["authorization"]);
    expect(signed.headers["x-amz-content-sha256"]).toBe(captured.headers["x-amz-content-sha256"]);
    expect(signed.headers["x-amz-security-token"]).toBe(captured.headers["x-amz-security-token"]);
  },
);

test.each([haiku, arn("provisioned-model/abc"), arn("x/y'(z)*!")])(
  "the path of %s is the one that the official client sends",
  async (modelId) => {
    const { path } = await capture({ name: "path", command: converse(modelId) });
    expect(`/model/${encodePathSegment(modelId)}/converse`).toBe(path);
  },
);

const request: UpstreamRequest = {
  url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/converse",
  method: "POST",
  headers: { "content-type": "application/json", "accept-encoding": "identity" },
  body: '{"a":1}',
};
const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

function signatureOf(signed: UpstreamRequest): string {
  return /Signature=([0-9a-f]{64})$/.exec(signed.headers["authorization"] ?? "")?.[1] ?? "none";
}

describe("a signature", () => {
  const signer = new RequestSigner("us-east-1");
  const whole = signatureOf(signer.sign(request, credentialsOf("t"), nowMs));

  test("covers every part of the request, the credentials, the second and the region", () => {
    const others = [
      signer.sign({ ...request, body: '{"a":2}' }, credentialsOf("t"), nowMs),
      signer.sign(
        { ...request, url: request.url.replace("a%3A0", "b%3A0") },
        credentialsOf("t"),
        nowMs,
      ),
      signer.sign(
        { ...request, url: request.url.replace("east-1.a", "east-2.a") },
        credentialsOf("t"),
        nowMs,
      ),
      signer.sign({ ...request, method: "GET" }, credentialsOf("t"), nowMs),
      signer.sign(
        { ...request, headers: { "content-type": "text/plain" } },
        credentialsOf("t"),
        nowMs,
      ),
      signer.sign(request, credentialsOf("u"), nowMs),
      signer.sign(request, { ...credentialsOf("t"), secretAccessKey: new Secret("x") }, nowMs),
      signer.sign(request, credentialsOf("t"), nowMs + 1000),
      signer.sign(request, credentialsOf("t"), nowMs + 86_400_000),
      new RequestSigner("us-west-2").sign(request, credentialsOf("t"), nowMs),
    ].map(signatureOf);
    expect(whole).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set([whole, ...others]).size).toBe(others.length + 1);
  });

  test("changes with any one byte of the body", () => {
    const body = crypto.getRandomValues(new Uint8Array(256));
    const signatures = Array.from({ length: body.length + 1 }, (_, index) => {
      const changed = body.slice();
      if (index < body.length) changed[index] = (changed[index] ?? 0) ^ 1;
      return signatureOf(signer.sign({ ...request, body: changed }, credentialsOf(), nowMs));
    });
    expect(new Set(signatures).size).toBe(signatures.length);
  });

  test("is the same for a body as text or as bytes", () => {
    const body = "Grüße 👋🏽 \ud800";
    const asText = signer.sign({ ...request, body }, credentialsOf(), nowMs);
    const bytes = new TextEncoder().encode(body);
    expect(signatureOf(signer.sign({ ...request, body: bytes }, credentialsOf(), nowMs))).toBe(
      signatureOf(asText),
    );
  });

  test("does not cover headers that proxies rewrite, which are sent too", () => {
    const signed = signer.sign(request, credentialsOf(), nowMs);
    expect(signed.headers["authorization"]).toContain(
      "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date,",
    );
    expect(signed.headers["accept-encoding"]).toBe("identity");
    expect(signed.headers["x-amz-security-token"]).toBeUndefined();
    expect(signed.headers["x-amz-date"]).toBe("20260102T030405Z");
    expect(signed.body).toBe(request.body);
  });
});

test("signer and time of a signed request can be read", () => {
  const signed = new RequestSigner("us-east-1").sign(request, credentialsOf("t"), nowMs);
  const signature = { accessKeyId, sessionToken: "t", signedAtMs: nowMs - 678 };
  expect(readSignature(signed.headers)).toEqual(signature);
  expect(readSignature({ authorization: "Bearer x" })).toBeUndefined();
});

test("a kept signing key is never used for other credentials, another day or another region", () => {
  const known = ["a", "b", "a"].map((secret, index) => ({
    ...credentialsOf(index === 2 ? "token" : undefined),
    // The same key id, so that only the secret differs.
    secretAccessKey: new Secret(secret),
  }));
  const step = fc.record({
    credentials: fc.constantFrom(...known),
    dayMs: fc.constantFrom(0, 86_400_000, 86_399_999),
    region: fc.constantFrom("us-east-1", "eu-west-1"),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 20 }), (steps) => {
      const signers = new Map(
        ["us-east-1", "eu-west-1"].map((region) => [region, new RequestSigner(region)] as const),
      );
      for (const { credentials, dayMs, region } of steps) {
        const time = Date.UTC(2026, 0, 1) + dayMs;
        const kept = signers.get(region)?.sign(request, credentials, time);
        expect(kept).toEqual(new RequestSigner(region).sign(request, credentials, time));
      }
    }),
  );
});

test("the runtime sends what was signed: host with port, path and bytes", async () => {
  const seen: { host: string | null; path: string; body: Uint8Array }[] = [];
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(incoming) {
      const path = incoming.url.slice(new URL(incoming.url).origin.length);
      seen.push({ host: incoming.headers.get("host"), path, body: await incoming.bytes() });
      return new Response("{}");
    },
  });
  const body = '{"text":"Grüße \ud800"}';
  const path = `/model/${encodePathSegment(arn("provisioned-model/abc"))}/converse`;
  const url = `http://127.0.0.1:${server.port}${path}`;
  const signer = new RequestSigner("us-east-1");
  const signed = signer.sign({ ...request, url, body }, credentialsOf(), nowMs);
  await fetch(url, { method: "POST", headers: signed.headers, body });
  const [wire] = seen;
  expect(wire?.host).toBe(`127.0.0.1:${server.port}`);
  expect(wire?.path).toBe(path);
  const again = signer.sign(
    {
      ...request,
      url: `http://${wire?.host}${wire?.path}`,
      body: new Uint8Array(wire?.body ?? []),
    },
    credentialsOf(),
    nowMs,
  );
  expect(again.headers).toEqual(signed.headers);
});
