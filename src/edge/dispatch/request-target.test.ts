import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { readTarget } from "./request-target.ts";

function targetOf(url: string, headers: Record<string, string> = {}, method = "GET") {
  const request = new Request(url, { method, headers: { host: "a.example", ...headers } });
  const path = /^[a-z]+:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] ?? "";
  return readTarget(
    request,
    100,
    path.length > 1 ? { segments: path.slice(1).split("/") } : undefined,
  );
}

function statusOf(headers: Record<string, string>, method = "GET"): number | undefined {
  try {
    targetOf("http://a.example/", headers, method);
    return undefined;
  } catch (error) {
    return error instanceof GatewayError ? error.status : 0;
  }
}

test("the path ends before query and fragment and keeps its encoding", () => {
  const paths: readonly (readonly [string, string])[] = [
    ["http://a", "/"],
    ["http://a/", "/"],
    ["http://a/v1/models", "/v1/models"],
    ["http://a/v1/models?x=/y#z", "/v1/models"],
    ["http://a?x=/v1/models", "/"],
    ["http://a/v1/models/a%2Fb%20c", "/v1/models/a%2Fb%20c"],
  ];
  for (const [url, path] of paths) expect(targetOf(url).path).toBe(path);
});

test("the host is in lower case and has no port", () => {
  const hosts: readonly (readonly [string, string])[] = [
    ["Models.Example", "models.example"],
    ["models.example:8080", "models.example"],
    ["127.0.0.1:1", "127.0.0.1"],
    ["[::1]:443", "[::1]"],
    ["[2001:DB8::1]", "[2001:db8::1]"],
    ["under_score-d", "under_score-d"],
  ];
  for (const [host, name] of hosts) expect(targetOf("http://x/", { host }).host).toBe(name);
});

describe("a Host is refused:", () => {
  const hosts = [
    "",
    "a b",
    "a,b",
    "a@b",
    "a/b",
    "a:b",
    "a:",
    "a:123456",
    "[::1",
    "::1",
    "a\tb",
    "%61",
  ];
  for (const host of [...hosts, "a".repeat(256), "[1.2.3.4%eth0]"]) {
    test(JSON.stringify(host.slice(0, 20)), () => expect(statusOf({ host })).toBe(400));
  }
});

test("headers are counted up to the limit", () => {
  const headers = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, "1"]));
  expect(statusOf(headers(99))).toBeUndefined();
  expect(statusOf(headers(100))).toBe(431);
});

test("what the runtime joined from two headers is refused", () => {
  expect(statusOf({ authorization: "Bearer a, Bearer b" })).toBe(400);
  expect(statusOf({ "content-length": "5, 5" }, "POST")).toBe(400);
});

test("only a POST may have a body", () => {
  for (const method of ["GET", "HEAD"]) {
    expect(statusOf({ "content-length": "1" }, method)).toBe(400);
    expect(statusOf({ "transfer-encoding": "chunked" }, method)).toBe(400);
    expect(statusOf({ "content-length": "0" }, method)).toBeUndefined();
  }
  expect(statusOf({ "content-length": "1" }, "POST")).toBeUndefined();
});
