import { afterAll, beforeAll, expect, test } from "bun:test";
import { createFolder, idsOf, type JsonRecord, type SluiceFolder } from "./sluice-folder.ts";

/** Of `main`, 78 units can be sold; nothing of `spare` is served in the environment `production`. */
const configuration = (mainTokens: number): string => `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
environments:
  - { name: production, hosts: [a.example.com], models: [alpha-sonnet-4] }
  - { name: staging, hosts: [b.example.com], models: [gamma-large] }
upstreams:
  somewhere: { kind: openai, base_url: "http://127.0.0.1:1/v1" }
pools:
  main: { tokens_per_minute: ${mainTokens} }
  spare: { kind: dedicated, tokens_per_minute: 60000, unit_tokens_per_minute: 59000 }
models:
  alpha-sonnet-4:
    kind: chat
    context_window: 200000
    targets: [{ upstream: somewhere, model: sonnet, pool: main }]
  gamma-large:
    kind: chat
    context_window: 32000
    targets: [{ upstream: somewhere, model: large, pool: spare }]
`;

let folder: SluiceFolder;
let config: readonly string[];
let smaller: readonly string[];
beforeAll(async () => {
  folder = createFolder({ isOffline: true });
  const written = async (name: string, tokens: number): Promise<readonly string[]> => [
    "--config",
    await folder.write(name, configuration(tokens)),
  ];
  config = await written("sluice.yaml", 1_000_000);
  smaller = await written("smaller.yaml", 100_000);
  await folder.json("accounts", "create", "Shop", ...config);
  for (const environment of ["production", "staging"]) {
    const names = ["--account", "Shop", "--environment", environment];
    await folder.json("applications", "create", `in-${environment}`, ...names, ...config);
  }
});
afterAll(() => folder[Symbol.dispose]());

function create(environment: string, ...options: readonly string[]) {
  const to = ["--application", `in-${environment}`, "--plan", "pro"];
  return folder.run("keys", "create", ...to, ...options, ...config);
}

async function soldUnits(pool: string): Promise<unknown> {
  return (await folder.json("pools", "show", pool, ...config))["sold_units"];
}

test("units are bought with a key, raised and given back, and the pool's table follows", async () => {
  const pool = ["--provisioned-pool", "main"];
  const bought = ["--plan", "pro", "--provisioned-units", "3", ...pool];
  const to = ["--application", "in-production"];
  const made = await folder.json("keys", "create", ...to, ...bought, ...config);
  const key = made["key"] as JsonRecord;
  expect(key).toMatchObject({ provisioned_units: 3, provisioned_pool: "main" });
  const id = String(key["id"]);
  const raise = ["keys", "update", id, "--provisioned-units", "10", ...config];
  expect(await folder.json(...raise)).toMatchObject({ provisioned_units: 10 });
  const table = (await folder.run("pools", ...config)).output;
  expect(table.split("\n")[0]).toMatch(/^NAME +KIND +TOKENS\/MIN .* SOLD +HELD +LEFT +STATUS$/);
  expect(table).toMatch(/^main +shared +1000000 +200000 +10000 +10 +101695 +68 +ok$/m);
  expect(table).toMatch(/^spare +dedicated +60000 +0 +59000 +0 +0 +1 +ok$/m);
  const shown = await folder.run("pools", "show", "main", ...config);
  expect(shown.output).toContain("somewhere/sonnet");
  expect(shown.output).toContain(id);
  expect(idsOf(await folder.json("keys", "list", ...pool, ...config))).toEqual([id]);
  const clear = ["keys", "update", id, "--provisioned-units", "0", ...config];
  expect(await folder.json(...clear)).toMatchObject({ provisioned_pool: null });
  expect((await folder.run("pools", "show", "none", ...config)).exitCode).toBe(1);
});

test("a pool that does not fit is a mistake of the command line, told in its options", async () => {
  const units = ["--provisioned-units", "1"];
  const unnamed = await create("production", ...units);
  expect([unnamed.exitCode, unnamed.errors]).toEqual([
    2,
    "Invalid value for --provisioned-pool: there are several pools; choose one that serves environment production: main.\n",
  ]);
  const elsewhere = await create("production", ...units, "--provisioned-pool", "spare");
  expect(elsewhere.exitCode).toBe(2);
  expect(elsewhere.errors).toContain("serves no model of environment production; use main");
});

test("commands on one database at once cannot sell more than the pool holds", async () => {
  const units = ["--provisioned-pool", "main", "--provisioned-units", "10"];
  const sales = await Promise.all(Array.from({ length: 9 }, () => create("production", ...units)));
  const codes = sales.map(({ exitCode }) => exitCode);
  expect(codes.filter((code) => code === 0)).toHaveLength(7);
  expect(codes.filter((code) => code === 1)).toHaveLength(2);
  for (const { errors } of sales.filter(({ exitCode }) => exitCode === 1)) {
    expect(errors).toContain("Pool main cannot hold 10 more units: (70 + 10) x");
  }
  expect(await soldUnits("main")).toBe(70);
});

test("a pool that a changed configuration made too small is warned of", async () => {
  const { output, errors, exitCode } = await folder.run("pools", "list", ...smaller);
  expect(exitCode).toBe(0);
  expect(output).toContain("oversold");
  expect(errors).toContain("Warning: pool main is smaller than what is sold");
});

test("without pools the list says how they are made", async () => {
  using other = createFolder({ isOffline: true });
  const { output, errors } = await other.run("pools");
  expect([output, errors]).toEqual([
    "",
    "There are no pools. Define them under `pools` in the configuration.\n",
  ]);
});
