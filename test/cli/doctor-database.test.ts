import { afterAll, beforeAll, expect, test } from "bun:test";
import pg from "pg";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { freePort } from "../support/free-port.ts";
import { runSluice } from "../support/sluice-process.ts";
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
  readonly errors: string;
}

const usualAuth = 'auth: { peppers: ["a pepper for tests that is long enough"] }';

interface Settings {
  readonly auth?: string;
  /** Name of the data directory. */
  readonly place?: string;
}

function sluice(url: string, ...command: readonly string[]): Promise<Told> {
  return sluiceWith({}, url, ...command);
}

async function sluiceWith(
  { auth = usualAuth, place }: Settings,
  url: string,
  ...command: readonly string[]
): Promise<Told> {
  const path = await folder.write(
    "sluice.yaml",
    `data_dir: ${folder.path}/${place ?? new URL(url).pathname.slice(1)}
storage: { url: "${url}" }
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { server: { kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: k } }
models:
  one: { kind: chat, context_window: 8000, max_output_tokens: 100, targets: [{ upstream: server, model: m }] }
${auth}
`,
  );
  const { exitCode, output, errors } = await (command[0] === "serve" ? runSluice : runHere)([
    ...command,
    "--config",
    path,
  ]);
  return { exitCode, text: output.replaceAll(/\s+/g, " "), errors };
}

/** As the first use of a database does. */
const createSchema = (url: string): Promise<Told> => sluice(url, "accounts", "list", "--offline");

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
    expect(empty.text).toContain("note database it is empty: the first start creates its schema");
    expect(empty.text).toContain("ok clock agrees with the database");
    expect(empty.text).toMatch(
      /ok database \d+ connections left, of which a gateway takes up to 11/,
    );
    await createSchema(url);
    expect((await doctor(url)).text).toMatch(/ok database its schema \d+ is that of this version/);
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
    await createSchema(url);
    await run(url, "CREATE ROLE guest LOGIN");
    const { exitCode, text } = await doctor(url.replace("sluice@", "guest@"));
    expect(exitCode).toBe(1);
    expect(text).toContain("FAILED database the user cannot create tables, or does not own them");
  });

  test("what a start refuses is told with what to do: pepper and installation", async () => {
    const url = await databases.server.createDatabase();
    const examine = (settings: Settings, at = url) =>
      sluiceWith(settings, at, "doctor", "--no-targets");
    await createSchema(url);
    expect((await examine({})).exitCode).toBe(0);

    const peppers = 'auth: { peppers: ["another pepper for tests, long enough"] }';
    for (const settings of [{ auth: peppers }, { auth: "", place: "second" }]) {
      const { exitCode, text } = await examine(settings);
      expect(exitCode).toBe(1);
      expect(text).toMatch(/FAILED database the database postgres:\S+ was used with a/);
      expect(text).toContain("Set auth.peppers to the list of the gateways that use this database");
      expect(text).toContain("To do: ");
    }

    const other = await databases.server.createDatabase();
    const name = new URL(url).pathname.slice(1);
    const lost = await examine({ place: name }, other);
    expect(lost.text).toContain("is empty To do: ");
    expect(lost.text).toContain("use a new database and an empty data_dir");
  });

  test("a database that is not there is to be made", async () => {
    const url = (await databases.server.createDatabase()).replace(/[^/]*$/, "not_there");
    const { exitCode, text } = await doctor(url);
    expect(exitCode).toBe(1);
    expect(text).toContain("/not_there does not exist");
    expect(text).toContain("To do: create it, such as with `createdb --owner sluice ");
    expect(text).not.toContain("firewalls");
  });

  test("a server that wants TLS is told as such, by doctor and by a copy", async () => {
    const access = "host postgres all 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 trust\n";
    await using server = await startPostgres({ access });
    const url = await server.createDatabase();
    const { text } = await doctor(url);
    expect(text).toContain(
      "accepts no connection without TLS from here, and its URL has no sslmode",
    );
    expect(text).toContain("To do: add an sslmode to storage.url");
    expect(text).not.toContain("refuses the user");
    const from = await databases.server.createDatabase();
    await createSchema(from);
    const { exitCode, errors } = await runHere(["copy", "--from", from, "--to", url]);
    expect(exitCode).toBe(1);
    expect(errors).toContain("its URL has no sslmode");
  });

  test("a server without TLS, of which the URL wants it, is told as such", async () => {
    const url = await databases.server.createDatabase();
    const { exitCode, text } = await doctor(`${url}?sslmode=verify-full`);
    expect(exitCode).toBe(1);
    expect(text).toContain("offers no TLS, which sslmode in its URL asks for");
    expect(text).toContain("To do: turn TLS on at the server, or remove sslmode from storage.url");
  });

  test("a missing file of the URL is told with the setting that names it", async () => {
    const url = await databases.server.createDatabase();
    const wrong = `${url}?sslmode=verify-full&sslrootcert=/no/such.pem`;
    const reason = "sslrootcert of storage.url names a file that cannot be read: ENOENT";
    const { exitCode, text } = await doctor(wrong);
    expect(exitCode).toBe(1);
    expect(text).toContain(reason);
    expect(text).toContain("To do: correct the path");
    expect((await sluice(wrong, "serve")).errors).toContain(`cannot start: ${reason}`);
    expect((await sluice(wrong, "accounts", "list", "--offline")).errors).toContain(reason);
    const from = await databases.server.createDatabase();
    await createSchema(from);
    const copied = await runHere(["copy", "--from", from, "--to", wrong]);
    expect(copied.errors).toContain(`sslrootcert of ${url} names a file`);
  });

  test("a schema of another version is told", async () => {
    const url = await databases.server.createDatabase();
    await createSchema(url);
    await run(url, "UPDATE schema_version SET version = 999");
    const { exitCode, text } = await doctor(url);
    expect(exitCode).toBe(1);
    expect(text).toContain("has the schema 999");
  });

  test("a server that does not answer is told, without the password", async () => {
    const { exitCode, text } = await doctor(`postgres://user:geheim@127.0.0.1:${freePort()}/d`);
    expect(exitCode).toBe(1);
    expect(text).toContain("FAILED database the database postgres://user@127.0.0.1");
    expect(text).toContain("To do: check the address");
    expect(text).not.toContain("geheim");
  });
});
