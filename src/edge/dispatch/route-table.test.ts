import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { textReply } from "../replies/error-reply.ts";
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

describe("paths with parameters", () => {
  const paths: readonly (readonly [Route["method"], string])[] = [
    ["GET", "/admin/v1/keys"],
    ["POST", "/admin/v1/keys"],
    ["GET", "/admin/v1/keys/{id}"],
    ["PATCH", "/admin/v1/keys/{key_id}"],
    ["DELETE", "/admin/v1/keys/{id}"],
    ["POST", "/admin/v1/keys/{id}/rotate"],
    ["GET", "/admin/v1/usage/totals"],
    ["GET", "/admin/v1/{resource}/{id}"],
    ["GET", "/admin/v1/{resource}/totals"],
    ["GET", "/metrics"],
  ];
  const admin = new RouteTable(
    paths.map(([method, path]) => ({ method, path, access: "public", handle: answer })),
    "admin",
  );
  const found = (method: string, path: string): readonly unknown[] => {
    const { route, parameters } = admin.match(method, path);
    return [route.path, parameters];
  };

  test.each([
    ["GET", "/admin/v1/keys", "/admin/v1/keys", {}],
    ["POST", "/admin/v1/keys/", "/admin/v1/keys", {}],
    ["GET", "/admin/v1/keys/key_1", "/admin/v1/keys/{id}", { id: "key_1" }],
    ["HEAD", "/admin/v1/keys/key_1//", "/admin/v1/keys/{id}", { id: "key_1" }],
    ["PATCH", "/admin/v1/keys/key_1", "/admin/v1/keys/{key_id}", { key_id: "key_1" }],
    ["POST", "/admin/v1/keys/a%2Fb%20c/rotate", "/admin/v1/keys/{id}/rotate", { id: "a/b c" }],
    ["GET", "/admin/v1/keys/%7Bid%7D", "/admin/v1/keys/{id}", { id: "{id}" }],
    ["GET", "/admin/v1/keys/~", "/admin/v1/keys/{id}", { id: "~" }],
  ])("%s %s is %s", (method, path, route, parameters) => {
    expect(found(method, path)).toEqual([route, parameters]);
  });

  test("literal segments go before parameters, the earlier ones first", () => {
    expect(found("GET", "/admin/v1/usage/totals")[0]).toBe("/admin/v1/usage/totals");
    expect(found("GET", "/admin/v1/keys/totals")[0]).toBe("/admin/v1/keys/{id}");
    expect(found("GET", "/admin/v1/users/totals")[0]).toBe("/admin/v1/{resource}/totals");
    expect(found("GET", "/admin/v1/users/x")[1]).toEqual({ resource: "users", id: "x" });
  });

  test.each([
    "/admin/v1/keys/key_1/rotate/x",
    "/admin/v1/keys//rotate",
    "/admin/v1/keys/%zz",
    "/admin/v1",
    "/v1/admin/v1/keys",
    "/admin/v1/keys/key_1%2Frotate/x/y",
    "/v1/metrics",
  ])("GET %s is an unknown URL, and the message speaks of the admin API", (path) => {
    let message = "";
    try {
      admin.match("GET", path);
    } catch (error) {
      if (error instanceof GatewayError && error.status === 404) message = error.message;
    }
    expect(message).toContain("/admin/v1/docs");
    expect(message).not.toContain("/v1/chat");
  });

  test("other methods of a shape are named, also with other names of parameters", () => {
    expect(admin.methods("/admin/v1/keys/key_1")).toEqual(["GET", "PATCH", "DELETE", "OPTIONS"]);
    expect(() => admin.match("PUT", "/admin/v1/keys/key_1")).toThrow("Not allowed to PUT");
  });

  test.each([
    ["/a", "/a/"],
    ["/a/{id}", "/a/{name}"],
    ["/a/*", "/a/*"],
  ])("two routes of one shape and method are a mistake: %s and %s", (one, other) => {
    const routesOf = [one, other].map((path): Route => ({
      method: "GET",
      path,
      access: "public",
      handle: answer,
    }));
    expect(() => new RouteTable(routesOf, "admin")).toThrow("two routes take GET");
  });

  test("any value that is put into a path comes out of it", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "grapheme" }), (id) => {
        const path = `/admin/v1/keys/${encodeURIComponent(id)}/rotate`;
        expect(found("POST", path)).toEqual(["/admin/v1/keys/{id}/rotate", { id }]);
      }),
    );
  });

  test("of any path the table says a route or 404, and a route's parameters are never empty", () => {
    const segment = fc.oneof(
      fc.constantFrom("admin", "v1", "keys", "usage", "totals", "rotate", "", "%", "%41", ".."),
      fc.string({ maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 7 }), (segments) => {
        try {
          const { route, parameters } = admin.match("GET", `/${segments.join("/")}`);
          expect(Object.keys(parameters)).toHaveLength(route.path.split("{").length - 1);
          for (const value of Object.values(parameters)) expect(value).not.toBe("");
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
          expect([404, 405]).toContain((error as GatewayError).status);
        }
      }),
      { numRuns: 500 },
    );
  });
});
