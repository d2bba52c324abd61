import { describe, expect, test } from "bun:test";
import { Secret } from "../../../domain/keys/secret.ts";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import type { FailedAnswer, UpstreamRequest } from "../../adapter.ts";
import { createAuthorizer } from "./authorize.ts";
import { type AwsCredentials, RequestSigner } from "./sign.ts";

const servicesAt = (clock: ManualClock) => ({ clock, onTrouble: () => undefined });

const minute = 60_000;
const forever = new AbortController();
const region = "us-east-1";

const request: UpstreamRequest = {
  url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/converse",
  method: "POST",
  headers: { "content-type": "application/json" },
  body: "{}",
};

const neverLoaded = (): Promise<AwsCredentials> => {
  throw new Error("the chain must not be asked");
};

function refusal(dateMs: number): FailedAnswer {
  const headers = new Headers({ date: new Date(dateMs).toUTCString() });
  return { status: 403, headers, body: new Uint8Array() };
}

function credentials(accessKeyId: string, expiresAtMs: number): AwsCredentials {
  return {
    accessKeyId,
    secretAccessKey: new Secret(`secret of ${accessKeyId}`),
    sessionToken: new Secret(`token of ${accessKeyId}`),
    expiresAtMs,
  };
}

function keyOf({ headers }: UpstreamRequest): string | undefined {
  return /Credential=(\w+)\//.exec(headers["authorization"] ?? "")?.[1];
}

/** A chain with credentials K1, K2 ... that are valid for an hour. */
function chained(clock: ManualClock) {
  let loads = 0;
  const load = async () => {
    loads += 1;
    const keyId = `K${loads}`;
    // Asynchronous, as over a network.
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    return credentials(keyId, clock.now() + 60 * minute);
  };
  const settings = { region, credentials: { source: "chain", profile: undefined } } as const;
  const authorizer = createAuthorizer(settings, servicesAt(clock), load);
  return {
    authorizer,
    authorize: async () => authorizer.authorize(request, forever),
    loads: () => loads,
  };
}

describe("a bearer key", () => {
  const authorizer = createAuthorizer(
    { region, credentials: { source: "bearer", apiKey: new Secret("ABSK-key") } },
    servicesAt(new ManualClock()),
    neverLoaded,
  );

  test("is sent unchanged, without a signature and without the chain", async () => {
    const authorized = await authorizer.authorize(request, forever);
    expect(authorized).toEqual({
      ...request,
      headers: { "content-type": "application/json", authorization: "Bearer ABSK-key" },
    });
  });

  test("stays the same after a refusal", async () => {
    const before = await authorizer.authorize(request, forever);
    authorizer.noteFailure(refusal(0), before, "stale-credential");
    expect(await authorizer.authorize(request, forever)).toEqual(before);
  });
});

describe("static keys", () => {
  const clock = new ManualClock();
  const keys = {
    accessKeyId: "AKIDEXAMPLE",
    secretAccessKey: new Secret("s"),
    sessionToken: new Secret("t"),
  };
  const settings = { region, credentials: { source: "static", ...keys } } as const;

  test("sign every request with the time of the clock, without the chain", async () => {
    const authorizer = createAuthorizer(settings, servicesAt(clock), neverLoaded);
    const expected = new RequestSigner(region).sign(
      request,
      { ...keys, expiresAtMs: undefined },
      clock.now(),
    );
    expect(await authorizer.authorize(request, forever)).toEqual(expected);
    expect(expected.headers["x-amz-security-token"]).toBe("t");
  });

  test("are still used after a refusal, because there are no others", async () => {
    const authorizer = createAuthorizer(settings, servicesAt(clock), neverLoaded);
    const before = await authorizer.authorize(request, forever);
    authorizer.noteFailure(refusal(clock.now()), before, "stale-credential");
    expect(await authorizer.authorize(request, forever)).toEqual(before);
  });
});

describe("the chain", () => {
  test("is asked once for 500 calls when the credentials end, and none fails", async () => {
    const clock = new ManualClock();
    const { authorize, loads } = chained(clock);
    expect(keyOf(await authorize())).toBe("K1");
    clock.advance(60 * minute);
    const authorized = await Promise.all(Array.from({ length: 500 }, authorize));
    expect(new Set(authorized.map(keyOf))).toEqual(new Set(["K2"]));
    expect(loads()).toBe(2);
  });

  test("is asked once when 500 calls are refused for expired credentials", async () => {
    const clock = new ManualClock();
    const { authorizer, authorize, loads } = chained(clock);
    const sent = await Promise.all(Array.from({ length: 500 }, authorize));
    const retried = await Promise.all(
      sent.map((each) => {
        authorizer.noteFailure(refusal(clock.now()), each, "stale-credential");
        return authorize();
      }),
    );
    expect(new Set(retried.map(keyOf))).toEqual(new Set(["K2"]));
    // A late refusal is not about the new credentials.
    for (const each of sent) {
      authorizer.noteFailure(refusal(clock.now()), each, "stale-credential");
    }
    expect(keyOf(await authorize())).toBe("K2");
    expect(loads()).toBe(2);
  });

  test("is not asked again after failures unrelated to the credentials", async () => {
    const clock = new ManualClock();
    const { authorizer, authorize, loads } = chained(clock);
    const sent = await authorize();
    authorizer.noteFailure(refusal(clock.now()), sent, "throttled");
    authorizer.noteFailure(refusal(clock.now()), sent, "bad-credential");
    authorizer.noteFailure(refusal(clock.now()), request, "stale-credential");
    await authorize();
    expect(loads()).toBe(1);
  });
});

describe("a wrong clock", () => {
  test("is corrected from the refusal's date, without new credentials", async () => {
    const clock = new ManualClock();
    const { authorizer, authorize, loads } = chained(clock);
    const theirs = clock.now() + 30 * minute;
    const sent = await Promise.all(Array.from({ length: 20 }, authorize));
    for (const each of sent) authorizer.noteFailure(refusal(theirs), each, "stale-credential");
    const { headers } = await authorize();
    expect(headers["x-amz-date"]).toBe("20260101T003000Z");
    expect(loads()).toBe(1);
    clock.advance(minute);
    expect((await authorize()).headers["x-amz-date"]).toBe("20260101T003100Z");
  });

  test("is corrected for static keys too, in both directions, and back", async () => {
    const clock = new ManualClock();
    const keys = { accessKeyId: "A", secretAccessKey: new Secret("s"), sessionToken: undefined };
    const settings = { region, credentials: { source: "static", ...keys } } as const;
    const authorizer = createAuthorizer(settings, servicesAt(clock));
    const dates: (string | undefined)[] = [];
    for (const offset of [-24 * 60 * minute, 0, 5 * minute]) {
      const sent = await authorizer.authorize(request, forever);
      authorizer.noteFailure(refusal(clock.now() + offset), sent, "stale-credential");
      dates.push((await authorizer.authorize(request, forever)).headers["x-amz-date"]);
    }
    expect(dates).toEqual(["20251231T000000Z", "20260101T000000Z", "20260101T000500Z"]);
  });

  test.each([
    ["four minutes off", 4 * minute],
    ["four minutes behind", -4 * minute],
  ])("is right enough at %s: the credentials are renewed", async (_, offset) => {
    const clock = new ManualClock();
    const { authorizer, authorize, loads } = chained(clock);
    authorizer.noteFailure(refusal(clock.now() + offset), await authorize(), "stale-credential");
    const { headers } = await authorize();
    expect(headers["x-amz-date"]).toBe("20260101T000000Z");
    expect(loads()).toBe(2);
  });

  test("cannot be recognized in a refusal without a date: the credentials are renewed", async () => {
    const clock = new ManualClock();
    const { authorizer, authorize, loads } = chained(clock);
    const answer = { ...refusal(0), headers: new Headers({ date: "soon" }) };
    authorizer.noteFailure(answer, await authorize(), "stale-credential");
    expect(keyOf(await authorize())).toBe("K2");
    expect(loads()).toBe(2);
  });
});
