import { afterEach, expect, test } from "bun:test";
import { runHere } from "../../../test/cli/run-here.ts";
import { Secret } from "../../domain/keys/secret.ts";

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Serves `count` accounts in pages, and records the queries. */
function listenWith(count: number): { readonly url: string; readonly queries: string[] } {
  const queries: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { search, searchParams } = new URL(request.url);
      queries.push(search);
      const start = Number(searchParams.get("cursor") ?? "0");
      const end = Math.min(start + Number(searchParams.get("limit")), count);
      const data = Array.from({ length: end - start }, (_, index) => ({ id: start + index }));
      return Response.json({ data, next_cursor: end < count ? String(end) : null });
    },
  });
  stops.push(() => void server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, queries };
}

async function list(url: string, ...options: string[]) {
  const environment = { adminUrl: url, adminToken: new Secret("slc-mgt_token") };
  const { output, errors } = await runHere(["accounts", "list", ...options], { environment });
  return { output, errors };
}

test("a list is read in pages up to the requested number", async () => {
  const { url, queries } = listenWith(2000);
  const { output } = await list(url, "--json", "--limit", "1200");
  const { data, next_cursor } = JSON.parse(output) as { data: object[]; next_cursor: string };
  expect(data).toEqual(Array.from({ length: 1200 }, (_, id) => ({ id })));
  expect(next_cursor).toBe("1200");
  expect(queries).toEqual(["?limit=500", "?limit=500&cursor=500", "?limit=200&cursor=1000"]);
});

test("a list that ends mentions no more items, and reads no further page", async () => {
  const { url, queries } = listenWith(70);
  const first = await list(url);
  expect(first.output.trim().split("\n")).toHaveLength(51);
  expect(first.errors).toContain("--cursor 50");
  const rest = await list(url, "--cursor", "50");
  expect(rest.output.trim().split("\n")).toHaveLength(21);
  expect(rest.errors).toBe("");
  expect(queries).toHaveLength(2);
});

test("an empty list leaves standard output empty, and as JSON it is a list", async () => {
  const { url } = listenWith(0);
  const empty = await list(url);
  expect(empty.output).toBe("");
  expect(empty.errors).toContain("no accounts");
  expect(JSON.parse((await list(url, "--json")).output)).toEqual({ data: [], next_cursor: null });
});
