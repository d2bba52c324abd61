import { expect, test } from "bun:test";
import { GatewayError } from "../domain/gateway-error.ts";
import { textReply } from "./reply.ts";
import type { Route } from "./route.ts";
import { RouteTable } from "./route-table.ts";

const answer = (): ReturnType<typeof textReply> => textReply(200, "");
const routes: readonly Route[] = [
  { method: "POST", path: "/v1/chat/completions", access: "public", handle: answer },
  { method: "GET", path: "/v1/models", access: "public", handle: answer },
  { method: "GET", path: "/v1/models/*", access: "public", handle: answer },
  { method: "GET", path: "/healthz", access: "public", handle: answer },
];
const table = new RouteTable(routes);

function refusalOf(method: string, path: string): GatewayError {
  try {
    table.match(method, path);
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error(`${method} ${path} was not refused`);
}

test.each([
  ["/v1/models", "/v1/models", ""],
  ["/models", "/v1/models", ""],
  ["/v1/models/", "/v1/models", ""],
  ["/models///", "/v1/models", ""],
  ["/v1/v1/models", "/v1/models", ""],
  ["/v1/healthz", "/healthz", ""],
  ["/v1/models/alpha-sonnet-4", "/v1/models/*", "alpha-sonnet-4"],
  ["/v1/models/org%2Fname", "/v1/models/*", "org/name"],
  ["/v1/models/org/name:7b/", "/v1/models/*", "org/name:7b"],
  ["/models/v1/x", "/v1/models/*", "v1/x"],
])("GET %s finds %s", (path, route, parameter) => {
  const match = table.match("GET", path);
  expect([match.route.path, match.parameter]).toEqual([route, parameter]);
});

test.each([
  "/",
  "",
  "/v1",
  "/v1/",
  "/v2/models",
  "/v1/modelsx",
  "/v1/model",
  "/models/%zz",
  "//models",
])("GET %j is an unknown URL", (path) => {
  const error = refusalOf("GET", path);
  expect([error.status, error.code]).toEqual([404, "unknown_url"]);
});

test("HEAD is served where GET is", () => {
  expect(table.match("HEAD", "/healthz").route.path).toBe("/healthz");
});

test("a known path with another method names the methods it takes", () => {
  const error = refusalOf("DELETE", "/v1/chat/completions");
  expect([error.status, error.headers["allow"]]).toEqual([405, "POST, OPTIONS"]);
  expect(table.methods("/chat/completions")).toEqual(["POST", "OPTIONS"]);
  expect(table.methods("/nothing")).toEqual([]);
});

test("a base URL that goes too far is explained", () => {
  const error = refusalOf("POST", "/v1/chat/completions/chat/completions");
  expect(error.message).toContain("must end before '/chat/completions'");
});
