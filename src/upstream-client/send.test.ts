import { expect, test } from "bun:test";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import { Watchdog } from "./watchdog.ts";
import { upstreamOf } from "../../test/support/pipeline-fixtures.ts";
import { systemClock } from "../domain/clock.ts";
import { credentialTexts, UpstreamAnswer } from "./send.ts";

test("keys, tokens and signatures of a request are credentials, plain headers and words are not", () => {
  const authorization =
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE1234567/20260101/us-east-1/bedrock/aws4_request, " +
    "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date, Signature=0f1e2d3c";
  const texts = credentialTexts({
    url: "https://up.example/v1/chat?api-version=2026-01-01&key=in%2Fthe-query1",
    headers: {
      "content-type": "application/json",
      authorization,
      "x-amz-date": "20260101T000000Z",
      "x-amz-security-token": "session-token/1",
      "x-team": "blue team",
      "api-key": "a/key+with=signs",
    },
  });
  expect(texts).toContain("AKIDEXAMPLE1234567");
  expect(texts).toContain("0f1e2d3c");
  expect(texts).toContain("a/key+with=signs");
  expect(texts).toContain("in/the-query1");
  expect(texts).toContain("session-token/1");
  expect(texts).toContain(authorization);
  const plainTexts = ["application/json", "Credential", "Signature", "bedrock", "blue"];
  plainTexts.push("20260101", "us-east-1", "aws4_request", "20260101T000000Z", "2026-01-01");
  plainTexts.push("content-type;host;x-amz-content-sha256;x-amz-date");
  for (const plain of plainTexts) expect(texts).not.toContain(plain);
  expect(bearer("token-ab1")).toContain("token-ab1");
});

test("the parts of an error that repeat a credential are withheld", () => {
  const texts = bearer("token-ab1");
  const details = { kind: "invalid-request", message: "no token-ab1 here", status: 400 } as const;
  const quote = { param: "token-ab1[0]", code: "bad.token-ab1" };
  const failure = new UpstreamFailure({ ...details, ...quote });
  const clean = failure.withoutTexts(texts);
  expect(clean.details.message).toBe("[removed]");
  expect(clean.message).toBe("[removed]");
  expect(clean.details.param).toBe("[removed]");
  expect(clean.details.code).toBe("[removed]");
  const harmless = new UpstreamFailure(details).withoutTexts(["something else"]);
  expect(harmless.details).toEqual(details);
});

test.each([
  [{ "content-length": "100000" }, 100_000],
  [{ "content-length": "100000", "content-encoding": "gzip" }, 9_000_000],
])("an answer with the headers %p takes memory for what it may become", async (headers, bytes) => {
  const answer = answerOf(new Uint8Array(100_000), headers);
  const asked: number[] = [];
  await answer.readAll(9_000_000, { reserve: (most) => void asked.push(most) });
  expect(asked).toEqual([bytes]);
});

/** An answer that arrived whole; one that is encoded is decoded piece by piece. */
function answerOf(body: Uint8Array, headers: Readonly<Record<string, string>>): UpstreamAnswer {
  const options = {
    upstream: upstreamOf("up"),
    timeouts: { connectMs: 100, firstByteMs: 100, idleMs: 100, totalMs: 100 },
    endsAt: 0,
    clock: { ...systemClock, schedule: () => () => undefined },
    transport: () => Promise.reject(new Error("nothing is sent")),
    callerSignal: new AbortController().signal,
    places: { tryOpen: () => true, whenOpen: () => Promise.resolve(true), close: () => undefined },
  };
  const pieces = [body];
  const response = {
    status: 200,
    headers: new Headers(headers),
    get isOver() {
      return pieces.length === 0;
    },
    arrived: () => ("content-encoding" in headers ? undefined : pieces.shift()),
    take: () => pieces.shift(),
    whenReady: () => undefined,
  };
  const watchdog = new Watchdog(options);
  return new UpstreamAnswer({ response, watchdog, sent: { url: "", headers: {} } }, options);
}

function bearer(token: string): readonly string[] {
  const headers = { authorization: `Bearer ${token}` };
  return credentialTexts({ url: "https://up.example/v1/chat", headers });
}
