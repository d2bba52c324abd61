import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { errorShapeProblem } from "./error-shape.ts";
import { RawConnection, type RawAnswer } from "./raw-connection.ts";

/**
 * Targets as they are on the wire. A proxy in front compares them unchanged with its rules, so only
 * the plain form of a path may lead to what the path names.
 */

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sections: { admin: "{ hosts: [models.example] }" } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const listeners = ["data", "admin"] as const;
type Listener = (typeof listeners)[number];

async function get(listener: Listener, target: string): Promise<RawAnswer | undefined> {
  const url = listener === "data" ? gateway.url : gateway.adminUrl;
  using connection = await RawConnection.open(Number(new URL(url).port));
  connection.write(
    `GET ${target} HTTP/1.1\r\nHost: models.example\r\n` +
      `Authorization: Bearer ${gateway.key}\r\nConnection: close\r\n\r\n`,
  );
  return await connection.answer();
}

/** The answers of each listener without a sign-in or with a key. */
const served: Readonly<Record<Listener, readonly string[]>> = {
  data: ["/healthz", "/v1/models", "/v1/models/chat-model"],
  admin: ["/healthz", "/metrics", "/admin/v1/docs"],
};

/** Each is the path in another form: as a URL parser, or a server that decodes, reads it. */
const disguises: readonly (readonly [name: string, disguise: (path: string) => string])[] = [
  ["backslashes", (path) => `/x\\..${path.replaceAll("/", "\\")}`],
  ["a backslash for the first slash", (path) => `/\\${path.slice(1)}`],
  ["a backslash behind it", (path) => `${path}\\`],
  ["dots behind a segment", (path) => `/x/..${path}`],
  ["dots in capitals, encoded", (path) => `/x/%2E%2E${path}`],
  ["dots of which one is encoded", (path) => `/x/.%2e${path}`],
  ["a dot", (path) => `/.${path}`],
  ["a dot behind it", (path) => `${path}/.`],
  ["dots behind it", (path) => `${path}/x/..`],
  ["dots above the root", (path) => `/..${path}`],
  ["dots with a slash behind them", (path) => `${path}/x/../`],
  [
    "dots behind more segments than any path has",
    (path) => `${"/x".repeat(20)}${"/..".repeat(20)}${path}`,
  ],
  ["dots in an absolute target", (path) => `http://models.example/x/..${path}`],
  ["an encoded slash", (path) => `/x%2f..%2f${path.slice(1)}`],
  ["an encoded backslash", (path) => `/x%5C..%5C${path.slice(1)}`],
  ["an encoded slash before it", (path) => `/%2F${path.slice(1)}`],
  ["an encoded dot", (path) => `${path}%2e`],
  ["an empty segment", (path) => `/${path}`],
  ["an empty segment behind it", (path) => `${path}//`],
  ["an empty segment that dots take away", (path) => `/x//../..${path}`],
  ["a fragment", (path) => `${path}#x`],
  ["a fragment with dots in it", (path) => `${path}#/../x`],
];

describe.each(listeners)("on the %s listener,", (listener) => {
  test("a plain path is served, also with a slash or a query behind it, or in full", async () => {
    for (const path of served[listener]) {
      const forms = [path, `${path}/`, `${path}?x=/../y\\z//`, `http://models.example${path}`];
      for (const target of forms) {
        expect([target, (await get(listener, target))?.status]).toEqual([target, 200]);
      }
    }
  });

  test.each(disguises)("a path with %s is 400", async (_, disguise) => {
    for (const path of served[listener]) {
      const target = disguise(path);
      const answer = await get(listener, target);
      expect([target, answer?.status]).toEqual([target, 400]);
      if (answer === undefined) throw new Error("there is no answer");
      expect(errorShapeProblem(answer.headers, answer.body)).toBeUndefined();
    }
  });

  test("no mixture of such forms leads to a page", async () => {
    const pieces = ["/", "\\", ".", "..", "%2e", "%2f", "%5c", "x", "#", "?", "//"];
    const names = served[listener].map((path) => path.slice(1));
    const target = fc
      .array(fc.constantFrom(...pieces, ...names, ...names.map((name) => `/${name}`)), {
        minLength: 1,
        maxLength: 8,
      })
      .map((parts) => `/${parts.join("")}`);
    await fc.assert(
      fc.asyncProperty(target, async (sent) => {
        const answer = await get(listener, sent);
        const [path = ""] = sent.split("?", 1);
        const plain = path.endsWith("/") ? path.slice(0, -1) : path;
        const variants = served[listener].flatMap((name) =>
          listener === "data" ? [name, `/v1${name}`, name.replace(/^\/v1/, "")] : [name],
        );
        // The runtime resolves such a target to `/`, whose page has nothing to protect.
        const isFrontPage = /^<!doctype html>/i.test(String(answer?.body));
        if (variants.includes(plain) || isFrontPage) return;
        expect([sent, answer?.status]).not.toEqual([sent, 200]);
      }),
      { numRuns: 400 },
    );
  });
});

test("the name of a model may have an encoded slash, and nothing else may", async () => {
  const named = await get("data", "/v1/models/some%2Fmodel");
  expect(named?.status).toBe(404);
  expect(named?.body).toContain("'some/model'");
  for (const target of [
    "/v1%2fmodels",
    "/v1/models%2fchat-model",
    "/%2fhealthz",
    "/v1/chat%2Fcompletions",
  ]) {
    expect([target, (await get("data", target))?.status]).toEqual([target, 400]);
  }
});
