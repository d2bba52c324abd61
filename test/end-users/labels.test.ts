import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

type Labels = { end_user: string | null; tags: Record<string, string> | null };
type Row = Labels & { id: string; account_id: string };
type Total = { group: Record<string, string | null>; calls: number; input_tokens: number };

let gateway: TestGateway;
let otherKey: string;
let plainKey: string;

beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      tags: "[team, feature]",
      plans: "{ enterprise: { end_user_header: x-end-user }, pilot: {} }",
    },
  });
  otherKey = (await gateway.createKey({ account: "another-account" })).text;
  plainKey = (await gateway.createKey({ plan: "standard", application: "plain" })).text;
});
afterAll(() => gateway[Symbol.asyncDispose]());

const messages = [{ role: "user", content: "Hi" }];
const bodies = {
  "/v1/chat/completions": { model: "chat-model", messages },
  "/v1/responses": { model: "chat-model", input: "Hi" },
  "/v1/messages": { model: "chat-model", max_tokens: 10, messages },
  "/v1/embeddings": { model: "embedding-model", input: "Hi" },
};
type Path = keyof typeof bodies;

interface Asking {
  readonly path?: Path;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
}

/** The row of a call, which must have succeeded. */
async function rowOf({ path = "/v1/chat/completions", body, headers, key }: Asking): Promise<Row> {
  const authorization = `Bearer ${key ?? gateway.key}`;
  const response = await gateway.post(
    path,
    { ...bodies[path], ...body },
    { headers: { authorization, ...headers } },
  );
  const text = await response.text();
  expect([response.status, text]).toEqual([200, text]);
  const id = response.headers.get("x-request-id") ?? "";
  await gateway.usage();
  return read<Row>(`/admin/v1/usage/calls/${id}`);
}

async function read<Answer>(path: string): Promise<Answer> {
  const response = await gateway.admin("GET", path);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

async function totals(query: string): Promise<readonly Total[]> {
  const answer = await read<{ data: Total[] }>(`/admin/v1/usage/totals?${query}`);
  return answer.data;
}

function droppedOf(label: string): Promise<number> {
  return fetch(`${gateway.adminUrl}/metrics`)
    .then((response) => response.text())
    .then((text) => {
      const line = new RegExp(
        `^sluice_labels_dropped_total\\{[^}]*of="${label}"[^}]*\\} (\\d+)$`,
        "m",
      );
      return Number(line.exec(text)?.[1] ?? 0);
    });
}

test("an end user is the same in every dialect and place, and another in another account", async () => {
  const named = [
    await rowOf({ body: { user: "jane" } }),
    await rowOf({ body: { safety_identifier: "jane", user: "somebody else" } }),
    await rowOf({ path: "/v1/responses", body: { user: " jane " } }),
    await rowOf({ path: "/v1/messages", body: { metadata: { user_id: "jane" } } }),
    await rowOf({ path: "/v1/embeddings", body: { user: "jane" } }),
    await rowOf({ headers: { "x-end-user": "jane" }, body: { safety_identifier: "not jane" } }),
  ].map((row) => row.end_user);
  expect(named[0]).toMatch(/^eu_[0-9A-Za-z]{16}$/);
  expect(new Set(named).size).toBe(1);
  const other = await rowOf({ body: { user: "jane" }, key: otherKey });
  expect(other.end_user).toMatch(/^eu_/);
  expect(other.end_user).not.toBe(named[0] ?? null);
});

test("a header names end users only for keys whose plan has it", async () => {
  const row = await rowOf({ headers: { "x-end-user": "jane" }, key: plainKey });
  expect(row.end_user).toBeNull();
});

test("calls without a name have none", async () => {
  expect(await rowOf({ body: { user: "" } })).toMatchObject({ end_user: null, tags: null });
  expect(await rowOf({ body: { metadata: { other: "x" } } })).toMatchObject({ tags: null });
});

test("values that are no names are dropped and counted, and the call goes on", async () => {
  const before = await droppedOf("end_user");
  const bad = ["a\nb", "a\u0000b", "\u202egnp.exe", "a\u200bb", "a\u2028b", "\ud800", " "];
  for (const user of bad) {
    expect((await rowOf({ body: { user } })).end_user).toBeNull();
  }
  // As long as a body may be, which OpenAI's fields may not.
  for (const length of [257, 1_000_000]) {
    const metadata = { user_id: "x".repeat(length) };
    expect((await rowOf({ path: "/v1/messages", body: { metadata } })).end_user).toBeNull();
  }
  const wide = { metadata: { user_id: "ü".repeat(129) } };
  expect((await rowOf({ path: "/v1/messages", body: wide })).end_user).toBeNull();
  expect((await droppedOf("end_user")) - before).toBe(bad.length + 3);
  const longest = { metadata: { user_id: "ü".repeat(128) } };
  expect((await rowOf({ path: "/v1/messages", body: longest })).end_user).toMatch(/^eu_/);
  for (const user of ["Jürgen Ö", "=cmd|' /C calc'!A0", `"; drop table usage; --`, "李小龍"]) {
    expect((await rowOf({ body: { user } })).end_user).toMatch(/^eu_/);
  }
});

test("tags are the keys that the file allows, from metadata or a header", async () => {
  const before = await droppedOf("tag");
  const metadata = { team: "search", other: "x", feature: "chat" };
  const ofBody = await rowOf({ body: { metadata } });
  expect(ofBody.tags).toEqual({ team: "search", feature: "chat" });
  const headers = { "x-sluice-tags": "team=ads, feature = a=b ,other=1,=,,x" };
  expect((await rowOf({ body: { metadata }, headers })).tags).toEqual({
    team: "ads",
    feature: "a=b",
  });
  const embeddings = await rowOf({ path: "/v1/embeddings", headers });
  expect(embeddings.tags).toEqual({ team: "ads", feature: "a=b" });
  const bad = { team: "x".repeat(65), feature: "a\nb" };
  expect((await rowOf({ body: { metadata: bad } })).tags).toBeNull();
  expect((await droppedOf("tag")) - before).toBe(2);
  const long = { "x-sluice-tags": `team=ads,${"x".repeat(1_024)}` };
  expect((await rowOf({ body: { metadata: { team: "search" } }, headers: long })).tags).toEqual({
    team: "search",
  });
  expect((await droppedOf("tag")) - before).toBe(3);
  const prototype = { "x-sluice-tags": "__proto__=x,constructor=y" };
  expect((await rowOf({ headers: prototype })).tags).toBeNull();
});

test("reports filter and group by end user and by tag, with a rest", async () => {
  const key = (await gateway.createKey({ account: "reports" })).text;
  const ask = (user: string, team: string) => {
    return rowOf({ body: { user, metadata: { team } }, key });
  };
  const ann = await ask("ann", 'a"b,\\c');
  await ask("ann", "x");
  await ask("ann", "x");
  const bob = await ask("bob", 'y":"x');
  await rowOf({ key });
  const account = `account_id=${ann.account_id}`;
  const byUser = await totals(`${account}&by=end_user`);
  const counts = new Map(byUser.map(({ group, calls }) => [group["end_user"], calls]));
  expect(counts).toEqual(
    new Map([
      [ann.end_user, 3],
      [bob.end_user, 1],
      [null, 1],
    ]),
  );
  const top = await totals(`${account}&by=end_user&limit=1&rest=true`);
  expect(top.map(({ group, calls }) => [group, calls])).toEqual([
    [{ end_user: ann.end_user }, 3],
    [{}, 2],
  ]);
  const byTeam = await totals(`${account}&by=tag:team`);
  expect(Object.fromEntries(byTeam.map(({ group, calls }) => [group["tag:team"], calls]))).toEqual({
    'a"b,\\c': 1,
    x: 2,
    'y":"x': 1,
    null: 1,
  });
  const tag = (value: string) => `tag=${encodeURIComponent(`team=${value}`)}`;
  expect((await totals(`${account}&${tag('a"b,\\c')}`))[0]?.calls).toBe(1);
  expect((await totals(`${account}&${tag("x")}&by=model`))[0]?.calls).toBe(2);
  expect(await totals(`${account}&${tag("X")}`)).toEqual([]);
  expect((await totals(`${account}&end_user=${ann.end_user}&by=model`))[0]?.calls).toBe(3);
  const listed = await read<{ data: Row[] }>(
    `/admin/v1/usage/calls?${account}&end_user=${ann.end_user}&${tag("x")}`,
  );
  expect(listed.data.map(({ tags }) => tags)).toEqual([{ team: "x" }, { team: "x" }]);
  const series = await read<{ data: Total[] }>(
    `/admin/v1/usage/series?${account}&by=end_user,tag:team&step=hour&limit=1&rest=true`,
  );
  expect(series.data.map(({ calls }) => calls).toSorted((one, other) => one - other)).toEqual([
    2, 3,
  ]);
  for (const key of ["constructor", "__proto__", "toString"]) {
    const groups = await totals(`${account}&by=tag:${key}`);
    expect(groups.map(({ group }) => Object.values(group))).toEqual([[null]]);
  }
  for (const wrong of ["by=tag:", "by=tag:a/b", "by=end_users", "tag=team", "tag=="]) {
    expect((await gateway.admin("GET", `/admin/v1/usage/totals?${wrong}`)).status).toBe(400);
  }
});

test("where names are stored, a formula is none for a spreadsheet, and only its account sees it", async () => {
  await using clear = await startGateway({ sections: { end_users: "clear", tags: "[team]" } });
  const names = ["=1+1", "@SUM(A1)", '"quoted", and; =more', "<script>alert(1)</script>"];
  for (const user of names) {
    const body = { ...bodies["/v1/chat/completions"], user, metadata: { team: "-1+1;=x" } };
    expect((await clear.post("/v1/chat/completions", body)).status).toBe(200);
  }
  const [row] = await clear.usage();
  const csv = await (await clear.admin("GET", "/admin/v1/usage/export?format=csv")).text();
  expect(csv).toContain(",'=1+1,");
  expect(csv).toContain(",'@SUM(A1),");
  expect(csv).not.toMatch(/(^|[,;"])\s*[=@]/m);
  const encoded = encodeURIComponent(names[2] ?? "");
  const found = await clear.admin("GET", `/admin/v1/usage/calls?end_user=${encoded}`);
  const { data } = (await found.json()) as { data: Row[] };
  expect(data.map(({ end_user: name }) => name)).toEqual([names[2] ?? ""]);
  // What upstreams get does not change.
  const path = `/admin/v1/accounts/${row?.accountId}/end-users`;
  const looked = (await (
    await clear.admin("POST", path, { names: [...names, "nobody"] })
  ).json()) as {
    data: { name: string; calls: number; cost_usd: string | null }[];
  };
  expect(looked.data.reduce((sum, { calls }) => sum + calls, 0)).toBe(names.length);
  // Nothing was used, so nothing is owed: no missing price.
  expect(looked.data.at(-1)).toMatchObject({ name: "nobody", calls: 0, cost_usd: "0.000000000" });
  const erase = `/admin/v1/accounts/${row?.accountId}/erase-end-user`;
  for (const name of names) await (await clear.admin("POST", erase, { name })).json();
  expect((await clear.usage()).map(({ endUser }) => endUser)).toEqual(names.map(() => undefined));
});
