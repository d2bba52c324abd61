import { expect, test } from "bun:test";
import { sql } from "kysely";
import { processesSchema } from "../../src/control/contract/processes.ts";
import { createFolder } from "../cli/sluice-folder.ts";
import { runHere } from "../cli/run-here.ts";
import { quietPort } from "../support/free-port.ts";
import { startGateway, testPepper, type TestGateway } from "../support/gateway.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { until } from "./machines-bench.ts";

describeWithPostgres((databases) => {
  async function start(url: string, more: Readonly<Record<string, string>>): Promise<TestGateway> {
    return startGateway({ sections: { storage: `{ url: "${url}" }`, ...more } });
  }

  const told = '"the gateways on this database are not configured alike"';
  const countOf = ({ log }: TestGateway, text: string): number =>
    log.filter((line) => line.includes(text)).length;

  async function warningsOf(gateway: TestGateway): Promise<readonly string[]> {
    return (await processesOf(gateway)).warnings;
  }

  async function processesOf(gateway: TestGateway) {
    const answer = await gateway.admin("GET", "/admin/v1/processes");
    return processesSchema.parse(await answer.json());
  }

  test("gateways that count limits in memory are warned of, until one is left", async () => {
    const url = await databases.server.createDatabase();
    await using first = await start(url, {});
    expect(await warningsOf(first)).toEqual([]);
    {
      await using _second = await start(url, {});
      await until(async () => (await warningsOf(first)).length > 0);
      const [warning] = await warningsOf(first);
      expect(warning).toStartWith(
        "2 processes use this database, but limits are in the memory of ",
      );
      await until(async () => countOf(first, told) > 0);
      const place = ["--data-dir", first.config.dataDir];
      const listed = await runHere(["processes", ...place]);
      expect(listed.errors).toContain(`Warning: ${warning}`);
      const doctor = await runHere(["doctor", "--no-targets", ...place]);
      expect(doctor.output).toMatch(/FAILED +gateways +2 processes use this database/);
      expect(doctor.exitCode).toBe(1);
    }
    await until(async () => countOf(first, "configured alike again") > 0);
    expect(countOf(first, told)).toBe(1);
    expect(await warningsOf(first)).toEqual([]);
  }, 180_000);

  test("doctor tells before a start that limits would not be shared", async () => {
    const url = await databases.server.createDatabase();
    await using first = await start(url, {});
    await until(async () => (await processesOf(first)).data.length > 0);
    using folder = createFolder({ isOffline: true });
    const examine = async (store: string): Promise<string> => {
      const path = await folder.write(
        "sluice.yaml",
        `data_dir: ${folder.path}/data
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "${url}" }
limits: { store: "${store}" }
auth: { peppers: ["${testPepper}"] }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { server: { kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: k } }
models:
  one: { kind: chat, context_window: 8000, max_output_tokens: 100, targets: [{ upstream: server, model: m }] }
`,
      );
      const { output } = await runHere(["doctor", "--no-targets", "--config", path]);
      return output.replaceAll(/\s+/g, " ");
    };
    expect(await examine("memory")).toMatch(
      /FAILED gateways 2 processes .* in the memory of .*, process 1 of this gateway, which/,
    );
    expect(await examine(`valkey://127.0.0.1:${quietPort()}`)).toMatch(
      /FAILED gateways 2 processes .* in the memory of process 1 of [^,]+, which grants/,
    );
  }, 180_000);

  test("doctor warns of another gateway that gives no sign", async () => {
    const url = await databases.server.createDatabase();
    await using first = await start(url, {});
    const connection = await databases.connect({ url });
    await connection.open();
    await connection.change((queries) =>
      sql`insert into processes select (json_populate_record(p, json_build_object(
        'id', 'mac_0@gone/1-1', 'name', 'gone', 'signed_at', signed_at - 32000))).* from processes p`.execute(
        queries,
      ),
    );
    await until(async () => (await warningsOf(first)).length > 0);
    const place = ["--data-dir", first.config.dataDir];
    const doctor = await runHere(["doctor", "--no-targets", ...place]);
    const told = doctor.output.replaceAll(/\s+/g, " ");
    expect(told).toMatch(/warning gateways process 1 of gone gives no sign for 3\d s\. Look at/);
    expect(told).not.toContain("FAILED gateways");
  }, 180_000);

  test("different servers of limits and different peppers are told without revealing them", async () => {
    const url = await databases.server.createDatabase();
    const [host, other] = [`127.0.0.1:${quietPort()}`, `127.0.0.1:${quietPort()}`];
    const newPepper = "a newer pepper for tests that is long enough";
    const limitsAt = (address: string): string =>
      `{ store: "valkey://user:hidden-word@${address}/3" }`;
    await using first = await start(url, { limits: limitsAt(host) });
    await using _second = await start(url, {
      limits: limitsAt(other),
      auth: `{ peppers: ["${newPepper}", "${testPepper}"] }`,
    });
    // Two of them say that a gateway cannot ask its server.
    await until(async () => (await warningsOf(first)).length === 4);
    const [ofLimits, ofPeppers, ...lacks] = await warningsOf(first);
    for (const lack of lacks) expect(lack).toContain("is degraded: limits.store does not answer");
    expect(ofLimits).toContain("limits.store names different servers");
    expect(ofPeppers).toContain("lacks the first pepper of another process");
    const connection = await databases.connect({ url });
    await connection.open();
    const rows = await connection.read((queries) =>
      sql<object>`select * from processes`.execute(queries),
    );
    const stored = JSON.stringify(rows.rows);
    for (const hidden of [host, other, "hidden-word", newPepper, testPepper]) {
      expect(stored).not.toContain(hidden);
    }
  }, 180_000);
});
