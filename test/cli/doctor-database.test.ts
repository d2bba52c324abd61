import { afterAll, beforeAll, expect, test } from "bun:test";
import pg from "pg";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { freePort } from "../support/free-port.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type SluiceFolder } from "./sluice-folder.ts";

let folder: SluiceFolder;
beforeAll(() => {
  folder = createFolder({ isOffline: true });
});
afterAll(() => folder[Symbol.dispose]());

interface Told {
  readonly exitCode: number;
  readonly text: string;
}

async function sluice(url: string, ...command: readonly string[]): Promise<Told> {
  const path = await folder.write(
    "sluice.yaml",
    `data_dir: ${folder.path}/${new URL(url).pathname.slice(1)}
storage: { url: "${url}" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { server: { kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: k } }
models:
  one: { kind: chat, context_window: 8000, max_output_tokens: 100, targets: [{ upstream: server, model: m }] }
auth: { peppers: ["a pepper for tests that is long enough"] }
`,
  );
  const { exitCode, output } = await runHere([...command, "--config", path]);
  return { exitCode, text: output.replaceAll(/\s+/g, " ") };
}

const doctor = (url: string): Promise<Told> => sluice(url, "doctor", "--no-targets");

describeWithPostgres((databases) => {
  async function run(url: string, ...statements: readonly string[]): Promise<void> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  }

  test("a good server is told to be so, before and after the schema is made", async () => {
    const url = await databases.server.createDatabase();
    const empty = await doctor(url);
    expect(empty.exitCode).toBe(0);
    expect(empty.text).toMatch(/ok database PostgreSQL \d\d answers/);
    expect(empty.text).toContain("note database its schema is 0; the next start brings it to");
    expect(empty.text).toContain("ok clock agrees with the database");
    expect(empty.text).toMatch(
      /ok database \d+ connections left, of which a gateway takes up to 11/,
    );
    await sluice(url, "migrate");
    expect((await doctor(url)).text).toMatch(/ok database its schema \d+ is up to date/);
  });

  test("a server that is read-only, or of which few connections are left, is told", async () => {
    const url = await databases.server.createDatabase();
    const name = new URL(url).pathname.slice(1);
    await run(
      url,
      `ALTER DATABASE ${name} SET default_transaction_read_only = on`,
      `ALTER DATABASE ${name} CONNECTION LIMIT 5`,
    );
    const { exitCode, text } = await doctor(url);
    expect(exitCode).toBe(1);
    expect(text).toContain("FAILED database it is read-only To do: set default_transaction");
    expect(text).toMatch(/warning database \d connections left/);
  });

  test("a user without rights is told", async () => {
    const url = await databases.server.createDatabase();
    await sluice(url, "migrate");
    await run(url, "CREATE ROLE guest LOGIN");
    const { exitCode, text } = await doctor(url.replace("sluice@", "guest@"));
    expect(exitCode).toBe(1);
    expect(text).toContain("FAILED database the user cannot create tables, or does not own them");
  });

  test("a schema that is too new is told", async () => {
    const url = await databases.server.createDatabase();
    await sluice(url, "migrate");
    await run(url, "UPDATE schema_version SET version = 999, compatible_since = 999");
    const { exitCode, text } = await doctor(url);
    expect(exitCode).toBe(1);
    expect(text).toContain("was written by a newer version of Sluice");
  });

  test("a server that does not answer is told, without the password", async () => {
    const { exitCode, text } = await doctor(`postgres://user:geheim@127.0.0.1:${freePort()}/d`);
    expect(exitCode).toBe(1);
    expect(text).toContain("FAILED database the database postgres://user@127.0.0.1");
    expect(text).toContain("To do: check the address");
    expect(text).not.toContain("geheim");
  });
});
